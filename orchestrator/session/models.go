package session

import (
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
)

// scriptPrefix begins the name of a model that is a recording.
const scriptPrefix = "script:"

// Model is a model with the facts that a stream records about it.
type Model struct {
	model.Model
	Name    string // as recorded: a name, or script:FILE
	Lookup  string // its name in the tables of EAS and prices
	BaseURL string
	Banner  string // describes a recording

	retries     *retryNotice
	reflect     model.Model // answers as the Reflect-Agent; nil: Model does
	reflectName string      // as Name; empty: Model does
	price       *price.Price
	unpriced    []string // models whose price is not known
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

// chooseModels returns the model of a run, and the Reflect-Agent's if the settings name one.
func (o *opening) chooseModels(ctx context.Context, name, baseURL string) (*Model, error) {
	m, err := o.ChooseModel(ctx, name, baseURL, o.Images)
	if err != nil && o.Model == "" && strings.HasPrefix(name, scriptPrefix) { // the task's own
		return nil, fmt.Errorf("the task's model (--model names another): %w", err)
	}
	if err != nil || o.ReflectModel == "" {
		return m, err
	}
	r, err := o.ChooseModel(ctx, o.ReflectModel, baseURL, "")
	if err != nil {
		return nil, fmt.Errorf("the Reflect-Agent's model (--reflect-model names another): %w", err)
	}
	m.reflect, m.reflectName, m.unpriced = r.Model, r.Name, append(m.unpriced, r.unpriced...)
	m.Banner = strings.TrimSpace(m.Banner + "\n" + r.Banner)
	return m, nil
}

// ChooseModel returns the model of a name, which may be empty. Without a key and an address it
// looks for a local Ollama. Replies state their cost if the table of prices has the model.
func (s *Service) ChooseModel(ctx context.Context, name, baseURL, images string) (*Model, error) {
	m, err := s.findModel(ctx, name, baseURL, images)
	if err != nil {
		return nil, err
	}
	table, err := price.Load(s.Home.Prices())
	if err != nil {
		return nil, Usagef("%v", err)
	}
	if p, ok := table.Lookup(m.Lookup); ok {
		m.price, m.Model = &p, price.Model(m.Model, p)
	} else {
		m.unpriced = append(m.unpriced, m.Lookup)
	}
	return m, nil
}

// Priced reports whether the table of prices has the model.
func (m *Model) Priced() bool { return m.price != nil }

// costKnown rejects a cost limit for a model without a price.
func (o *opening) costKnown(m *Model) error {
	if o.MaxCostUSD <= 0 || len(m.unpriced) == 0 {
		return nil
	}
	return Usagef("--max-cost: no price is known for %s; add a row to %s (docs/guides/costs.md has the form), or bound --max-tokens instead", strings.Join(m.unpriced, " and "), o.Home.Prices())
}

// findModel is ChooseModel without prices.
func (s *Service) findModel(ctx context.Context, name, baseURL, images string) (*Model, error) {
	if path, ok := strings.CutPrefix(name, scriptPrefix); ok {
		return scriptModel(path)
	}
	key := s.getenv(s.o.KeyEnv)
	if baseURL == "" {
		baseURL = s.getenv("OPENAI_BASE_URL")
	}
	if key == "" && baseURL == "" {
		url, names, ok := openai.Detect(ctx, openai.OllamaAddress(s.getenv(openai.OllamaEnv)))
		if !ok && name != "" {
			return nil, Usagef("%w server for %q ('anamnesis config' shows where a name is set): set OPENAI_API_KEY, or OPENAI_BASE_URL (--base-url) for another server, or start Ollama", ErrNoModel, name)
		}
		if !ok || len(names) == 0 && name == "" {
			return nil, Usagef("%w: set OPENAI_API_KEY, or OPENAI_BASE_URL (--base-url) for another server, and name the model with --model; "+
				"or start Ollama with a model pulled; 'anamnesis demo' needs neither", ErrNoModel)
		}
		baseURL = url
		if name == "" {
			name = names[0]
		}
	}
	if name == "" {
		return nil, Usagef("%w named: add --model NAME (for example --model gpt-5)", ErrNoModel)
	}
	client, err := openai.New(openai.Options{BaseURL: baseURL, Key: key, Model: name, Images: openai.Images(images)})
	if err != nil {
		return nil, Usagef("%v", err)
	}
	return retrying(&Model{Model: client, Name: name, Lookup: name, BaseURL: baseURL}), nil
}

func scriptModel(path string) (*Model, error) {
	if path == "" {
		return nil, Usagef("the model %q names no file; name a script after the colon, or another model", scriptPrefix)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, Usagef("script %s: %v", path, err)
	}
	m, err := script.Load(abs)
	if err != nil {
		return nil, scriptError(abs, err)
	}
	lookup := m.EASModel()
	if lookup == "" {
		lookup = m.Name()
	}
	return retrying(&Model{Model: m, Name: scriptPrefix + abs, Lookup: lookup, Banner: m.Banner()}), nil
}

// scriptError returns why a script cannot be played, with the remedy.
func scriptError(path string, err error) error {
	var wrong *script.SyntaxError
	if errors.As(err, &wrong) {
		return Usagef("script %w; docs/reference/script-model.md describes the format", err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Usagef("script %s: there is no such file; put it there, or name another model", path)
	}
	reason := err
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		reason = of.Err
	}
	return Usagef("script %s: cannot be read: %w; name a file that can, or another model", path, reason)
}
