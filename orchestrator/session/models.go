package session

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/model/named"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/runtime"
)

// Model is a model with the facts that a stream records about it.
type Model struct {
	*found

	reflect     model.Model // answers as the Reflect-Agent; nil: Model does
	reflectName string      // as Name; empty: Model does
	unpriced    []string    // models whose price is not known
}

type found = named.Model

// chooseModels returns the model of a run, and the Reflect-Agent's if the settings name one.
func (o *opening) chooseModels(ctx context.Context, name, baseURL string) (*Model, error) {
	m, err := o.ChooseModel(ctx, name, baseURL, o.Images)
	if err != nil && o.Model == "" && strings.HasPrefix(name, named.ScriptPrefix) { // the task's own
		return nil, remedy.With(fmt.Errorf("the task's model: %w", err), remedy.OtherModel, "")
	}
	if err != nil || o.ReflectModel == "" {
		return m, err
	}
	r, err := o.ChooseModel(ctx, o.ReflectModel, baseURL, "")
	if err != nil {
		return nil, remedy.With(fmt.Errorf("the Reflect-Agent's model: %w", err), remedy.OtherReflect, "")
	}
	m.reflect, m.reflectName, m.unpriced = r.Model, r.Name, append(m.unpriced, r.unpriced...)
	m.Banner = strings.TrimSpace(m.Banner + "\n" + r.Banner)
	return m, nil
}

// ChooseModel returns the model of a name; see [named.Open].
func (s *Service) ChooseModel(ctx context.Context, name, baseURL, images string) (*Model, error) {
	of, err := named.Open(ctx, name, &named.Options{
		Model: s.o.Model, BaseURL: baseURL, Images: images, Getenv: s.getenv, KeyEnv: s.o.KeyEnv,
		Prices: s.Home.Prices(),
		Config: filepath.Join(s.Home.Config, "config.yaml"),
	})
	if err != nil {
		return nil, &UsageError{err}
	}
	m := &Model{found: of}
	if !m.Priced() {
		m.unpriced = []string{m.Lookup}
	}
	return m, nil
}

// Priced reports whether the table of prices has the model.
func (m *Model) Priced() bool { return m.Price != nil }

// costKnown rejects a cost limit for a model without a price.
func (o *opening) costKnown(m *Model) error {
	if o.Limits.USD <= 0 || len(m.unpriced) == 0 {
		return nil
	}
	return settingf("max-cost", ": no price is known for %s; add a row to %s (docs/guides/costs.md has the form), or "+
		"bound the tokens instead", strings.Join(m.unpriced, " and "), o.Home.Prices())
}

// fallback returns what opens the models that take over in a directory, one after the other; nil if
// there are none. A model that cannot be opened, or has no price under a limit of cost, is skipped.
func (o *opening) fallback(dir, baseURL string, names []string) func(context.Context) (*runtime.Next, error) {
	if len(names) == 0 {
		return nil
	}
	return func(ctx context.Context) (*runtime.Next, error) {
		for len(names) > 0 {
			name := names[0]
			names = names[1:]
			m, err := o.ChooseModel(ctx, name, baseURL, o.Images)
			if err == nil {
				err = o.costKnown(m)
			}
			if err != nil {
				o.warn("the model %s does not take over: %v", name, err)
				continue
			}
			row, err := o.EAS(dir, m.Lookup)
			if err != nil {
				return nil, err
			}
			m.OnRetry(o.client.Retry)
			return &runtime.Next{
				Model: m.Model, Name: m.Name, BaseURL: m.BaseURL,
				EAS: row.EAS, EASFrom: row.Source, Window: row.Advertised,
			}, nil
		}
		return nil, nil
	}
}
