// Package named finds the model of a name: one of a server, or a recording. It adds to it what
// the program knows of its price, and retries.
package named

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/model/openai"
	"anamnesis/orchestrator/model/price"
	"anamnesis/orchestrator/model/script"
	"anamnesis/orchestrator/remedy"
)

// ErrNone: neither a model nor a server is named, and none was found.
var ErrNone = errors.New("no model")

// ScriptPrefix begins the name of a model that is a recording.
const ScriptPrefix = "script:"

// Model is a model with the facts that a stream records about it.
type Model struct {
	model.Model
	Name    string // as recorded: a name, or script:FILE
	Lookup  string // its name in the tables of EAS and prices
	BaseURL string
	Banner  string       // describes a recording
	Price   *price.Price // nil: not known
	// Fallback are the names of the models that take over when this one cannot answer.
	Fallback []string

	retries *retryNotice
}

// Options say where a model is looked for.
type Options struct {
	Model   model.Model // answers whatever the name; nil: one is found
	BaseURL string      // of the server; empty: from the environment
	Images  string      // see openai.Images
	Getenv  func(string) string
	KeyEnv  string // the variable that holds the API key
	Prices  string // the user's file of prices
	Config  string // the user's config.yaml, whose key TuningKey counts; empty: none
}

// Open returns the model of a name, which may be empty. Without a key and an address it looks
// for a local Ollama. Replies state their cost if the table of prices has the model. An error
// is a mistake of the caller, and names the remedy.
func Open(ctx context.Context, name string, o *Options) (*Model, error) {
	m, err := find(ctx, name, o)
	if err != nil {
		return nil, err
	}
	table, err := price.Load(o.Prices)
	if err != nil {
		return nil, err
	}
	if p, ok := table.Lookup(m.Lookup); ok {
		m.Price, m.Model = &p, price.Model(m.Model, p)
	}
	return m, nil
}

// OnRetry makes tell be called for each retry. It may be nil.
func (m *Model) OnRetry(tell func(model.Attempt)) { m.retries.set(tell) }

// retryNotice forwards retries to a function that is set later.
type retryNotice struct {
	mu   sync.Mutex
	tell func(model.Attempt)
}

func (n *retryNotice) set(tell func(model.Attempt)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell = tell
}

func (n *retryNotice) on(at model.Attempt) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tell != nil {
		n.tell(at)
	}
}

// retrying makes m retry transient faults.
func retrying(m *Model) *Model {
	m.retries = new(retryNotice)
	m.Model = model.Retry(m.Model, &model.RetryOptions{OnRetry: m.retries.on})
	return m
}

// find is Open without prices.
func find(ctx context.Context, name string, o *Options) (*Model, error) {
	if o.Model != nil {
		return retrying(&Model{Model: o.Model, Name: o.Model.Name(), Lookup: o.Model.Name()}), nil
	}
	if path, ok := strings.CutPrefix(name, ScriptPrefix); ok {
		return scriptModel(path)
	}
	key, baseURL := o.Getenv(o.KeyEnv), cmp.Or(o.BaseURL, o.Getenv("OPENAI_BASE_URL"))
	tuning, err := tuningOf(o.Config, name)
	if err != nil {
		return nil, err
	}
	if key == "" && baseURL == "" && tuning.KeyCommand == "" {
		url, names, ok := openai.Detect(ctx, openai.OllamaAddress(o.Getenv(openai.OllamaEnv)))
		if !ok && name != "" {
			return nil, remedy.With(fmt.Errorf("%w server for %q", ErrNone, name), remedy.NameServer, o.KeyEnv)
		}
		if !ok || len(names) == 0 && name == "" {
			return nil, remedy.With(ErrNone, remedy.SetUpModel, o.KeyEnv)
		}
		baseURL = url
		if name == "" {
			name = names[0]
			if tuning, err = tuningOf(o.Config, name); err != nil {
				return nil, err
			}
			tuning.KeyCommand = "" // a key is for the server that the user named, not for one that was found
		}
	}
	if name == "" {
		return nil, remedy.With(fmt.Errorf("%w named", ErrNone), remedy.NameModel, "")
	}
	options := openai.Options{BaseURL: baseURL, Key: key, Model: name, Images: openai.Images(o.Images)}
	if err := tuning.apply(&options); err != nil {
		return nil, err
	}
	client, err := openai.New(options)
	if err != nil {
		return nil, err
	}
	return retrying(&Model{Model: client, Name: name, Lookup: name, BaseURL: baseURL, Fallback: tuning.Fallback}), nil
}

func scriptModel(path string) (*Model, error) {
	if path == "" {
		return nil, fmt.Errorf(
			"the model %q names no file; name a script after the colon, or another model", ScriptPrefix)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("script %s: %v", path, err)
	}
	m, err := script.Load(abs)
	if err != nil {
		return nil, scriptError(abs, err)
	}
	lookup := cmp.Or(m.EASModel(), m.Name())
	return retrying(&Model{Model: m, Name: ScriptPrefix + abs, Lookup: lookup, Banner: m.Banner()}), nil
}

// scriptError returns why a script cannot be played, with the remedy.
func scriptError(path string, err error) error {
	if errors.As(err, new(*script.SyntaxError)) {
		return fmt.Errorf("script %w; docs/reference/script-model.md describes the format", err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("script %s: there is no such file; put it there, or name another model", path)
	}
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		err = of.Err
	}
	return fmt.Errorf("script %s: cannot be read: %w; name a file that can, or another model", path, err)
}
