package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"anamnesis/knowledge_base/userfile"
)

// maxConfig bounds a configuration file in bytes.
const maxConfig = 64 << 10

// config is the file's form.
type config struct {
	Kind        Kind   `yaml:"kind"`
	URL         string `yaml:"url"`
	Model       string `yaml:"model"`
	KeyEnv      string `yaml:"key_env"` // the name of the variable that holds the key
	Dimensions  int    `yaml:"dimensions"`
	CardPrefix  string `yaml:"card_prefix"`
	QueryPrefix string `yaml:"query_prefix"`
}

// Load returns the embedder that a YAML file describes, nil where there is no
// such file:
//
//	kind: ollama             # or openai
//	url: http://127.0.0.1:11434
//	model: nomic-embed-text
//	key_env: OPENAI_API_KEY  # the variable that holds the key
//	dimensions: 512
//	card_prefix: "search_document: "
//	query_prefix: "search_query: "
//
// The key is in the environment, not in the file. A variable that is named and empty
// is an error.
func Load(path string, getenv func(string) string) (*Embedder, error) {
	fi, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (!fi.Mode().IsRegular() || fi.Size() > maxConfig) {
		err = fmt.Errorf("not a file of at most %d bytes", maxConfig)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("embedder's settings %s: %w", path, err)
	}
	var c config
	const keys = "the keys are kind, url, model, key_env, dimensions, card_prefix and query_prefix"
	if err := userfile.Load(path, data, &c, keys); err != nil {
		return nil, fmt.Errorf("embedder's settings: %w", err)
	}
	o := Options{Kind: c.Kind, URL: c.URL, Model: c.Model, Dimensions: c.Dimensions}
	o.CardPrefix, o.QueryPrefix = c.CardPrefix, c.QueryPrefix
	if c.KeyEnv != "" {
		if o.Key = getenv(c.KeyEnv); o.Key == "" {
			return nil, fmt.Errorf("embedder's settings %s: key_env names %s, which is not set", path, c.KeyEnv)
		}
	}
	e, err := New(o)
	if err != nil {
		return nil, fmt.Errorf("embedder's settings %s: %w", path, err)
	}
	return e, nil
}
