package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/feature/subagent"
	"anamnesis/orchestrator/runtime"
)

// addSubagents adds the subagents of a task's agent, and the tool that runs them.
func (o *opening) addSubagents(ctx context.Context, dir string, specs []op.Agent, opts *runtime.Options) error {
	if len(specs) == 0 {
		return nil
	}
	for _, spec := range specs {
		sub := runtime.Subagent{
			Spec:   spec,
			Offers: func(name string, looks bool) bool { return agent.Offers(&spec, name, looks) },
			System: func(dir string) string { return o.subagentPrompt(&spec, dir) },
		}
		if spec.Model != "" {
			m, err := o.subagentModel(ctx, dir, spec)
			if err != nil {
				return err
			}
			sub.Model = m
		}
		opts.Subagents = append(opts.Subagents, sub)
	}
	tools, errs := opts.Tools.With(subagent.Tool(specs, nil))
	opts.Tools = tools
	return errors.Join(errs...)
}

// subagentPrompt returns the system prompt of a subagent in a directory. It omits what cannot
// be read there.
func (o *opening) subagentPrompt(spec *agent.Spec, dir string) string {
	text, _, faults, err := o.prompt(spec, dir, tokens.Fallback, subagentInstructionEAS)
	for _, fault := range faults {
		o.client.note(fault)
	}
	if err != nil {
		o.client.note(fmt.Sprintf("warning: subagent %s: %v", spec.Name, err))
		return agent.Render(spec, agent.Vars{Now: time.Now(), Dir: dir})
	}
	return text
}

// subagentInstructionEAS bounds a subagent's instructions: its work is short.
const subagentInstructionEAS = 16_000

func (o *opening) subagentModel(ctx context.Context, dir string, spec op.Agent) (*runtime.SubagentModel, error) {
	m, err := o.ChooseModel(ctx, spec.Model, o.BaseURL, "")
	if err != nil {
		return nil, fmt.Errorf("subagent %s: %w", spec.Name, err)
	}
	if err := o.costKnown(m); err != nil {
		return nil, fmt.Errorf("subagent %s: %w", spec.Name, err)
	}
	row, err := o.EAS(dir, m.Lookup)
	if err != nil {
		return nil, err
	}
	return &runtime.SubagentModel{
		Model: m.Model, Name: m.Name, BaseURL: m.BaseURL, EAS: row.EAS, EASFrom: row.Source, Window: row.Advertised,
		Encoding: row.Encoding,
	}, nil
}
