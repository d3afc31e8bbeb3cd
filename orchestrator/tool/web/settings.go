package web

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"anamnesis/knowledge_base/userfile"
)

// settings is web.yaml of the program's configuration.
type settings struct {
	Allow  []string `yaml:"allow"` // addresses that may be fetched although they are not public
	Search struct { // a Search; errors about a named type would show its name
		Engine string `yaml:"engine"`
		URL    string `yaml:"url"`
		Key    string `yaml:"key"` // also ${NAME}: a variable
	} `yaml:"search"`
}

// Load reads the user's settings of the network tools; without a file they are the defaults.
func Load(path string, getenv func(string) string) (o Options, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	fail := func(err error) (Options, error) { return o, fmt.Errorf("%s: %w", path, err) }
	if err != nil {
		return fail(err)
	}
	var f settings
	if err := userfile.Load(path, data, &f,
		"the keys are allow, a list of addresses, and search with engine, url and key"); err != nil {
		return o, err
	}
	if o.Allow, err = ParseAllow(f.Allow); err != nil {
		return fail(fmt.Errorf("allow: %w", err))
	}
	o.Search = Search(f.Search)
	if name, ok := strings.CutPrefix(o.Search.Key, "${"); ok && strings.HasSuffix(name, "}") {
		name = strings.TrimSuffix(name, "}")
		if o.Search.Key = getenv(name); o.Search.Key == "" {
			return fail(fmt.Errorf("search: the variable %s is not set", name))
		}
	}
	if err := o.Search.Check(); err != nil {
		return fail(err)
	}
	return o, nil
}
