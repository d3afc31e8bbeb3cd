package settings

import (
	"context"
	"fmt"

	assets "anamnesis"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/model/openai"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
)

// Reader returns a function that chooses the model of passes over the sessions of other agents:
// the one that the user's config.yaml names, on the server that it names. A project's file and
// the environment do not count, since agents pass a project's .env on to hooks; only the API
// key is in the environment. The file's max_cost limits what the passes over one session cost.
func Reader(getenv func(string) string) memory.Reader {
	env := func(name string) string {
		switch name {
		case "OPENAI_BASE_URL", openai.OllamaEnv, Env("model"), Env("base_url"), Env("key_env"), Env("max_cost"):
			return ""
		}
		return getenv(name)
	}
	return func(ctx context.Context, spent float64) (model.Model, int, error) {
		o := session.Options{Getenv: env, EAS: assets.EAS}
		svc, err := session.New(o)
		if err != nil {
			return nil, 0, err
		}
		set, err := Load(svc.Home, svc.Home.Config, env) // no project's directory
		if err != nil || set.Text("model") == "" {
			return nil, 0, err
		}
		o.KeyEnv = set.KeyEnv()
		if svc, err = session.New(o); err != nil {
			return nil, 0, err
		}
		m, err := svc.ChooseModel(ctx, set.Text("model"), set.Text("base_url"), "")
		if err != nil {
			return nil, 0, err
		}
		settings := session.Settings{}
		if set.Limits(&settings); settings.Limits.USD > 0 && !m.Priced() {
			return nil, 0, fmt.Errorf("max_cost: no price is known for %s; add a row to %s",
				m.Lookup, svc.Home.Prices())
		}
		if settings.Limits.USD > 0 && spent >= settings.Limits.USD {
			return nil, 0, fmt.Errorf("passes over this session cost %s, and max_cost is %s", state.Dollars(spent),
				state.Dollars(settings.Limits.USD))
		}
		row, err := svc.EAS(svc.Home.Config, m.Lookup)
		return m.Model, row.EAS, err
	}
}
