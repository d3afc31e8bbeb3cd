//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool/subagent"
)

// addSubagents gives a task the agents its own agent may hand work to, and the
// tool for it.
func (a *app) addSubagents(ctx context.Context, h taskdir.Home, dir string, f agentFlags, specs []op.Agent, o *runtime.Options) error {
	if len(specs) == 0 {
		return nil
	}
	var offered []subagent.Agent
	for _, spec := range specs {
		sub := runtime.Subagent{
			Spec:   spec,
			Offers: func(name string, looks bool) bool { return agent.Offers(&spec, name, looks) },
			System: func(dir string) string { return a.subagentPrompt(&spec, dir) },
		}
		if spec.Model != "" {
			m, err := a.subagentModel(ctx, h, dir, f, spec)
			if err != nil {
				return err
			}
			sub.Model = m
		}
		o.Subagents = append(o.Subagents, sub)
		offered = append(offered, subagent.Agent{Name: spec.Name, Description: spec.Description, ReadOnly: spec.ReadOnly})
	}
	tools, errs := o.Tools.With(subagent.Task(offered))
	o.Tools = tools
	return errors.Join(errs...)
}

// subagentPrompt is what a subagent is told in a directory. What cannot be read
// there is left out: it can look itself.
func (a *app) subagentPrompt(spec *agent.Spec, dir string) string {
	text, _, err := a.prompt(spec, dir, tokens.Fallback, subagentInstructionEAS)
	if err != nil {
		fmt.Fprintf(a.stderr, "anamnesis: warning: subagent %s: %v\n", spec.Name, err)
		return agent.Render(spec, agent.Vars{Now: time.Now(), Dir: dir})
	}
	return text
}

// subagentInstructionEAS bounds a subagent's instructions: its work is short.
const subagentInstructionEAS = 16_000

// subagentModel is the model that a subagent's spec names.
func (a *app) subagentModel(ctx context.Context, h taskdir.Home, dir string, f agentFlags, spec op.Agent) (*runtime.SubagentModel, error) {
	m, err := a.chooseModel(ctx, spec.Model, f.baseURL, "")
	if err != nil {
		return nil, fmt.Errorf("subagent %s: %w", spec.Name, err)
	}
	if err := a.costKnown(f, m); err != nil {
		return nil, fmt.Errorf("subagent %s: %w", spec.Name, err)
	}
	span, err := easFor(h, dir, m.lookup)
	if err != nil {
		return nil, err
	}
	return &runtime.SubagentModel{
		Model: m.model, Name: m.name, BaseURL: m.baseURL, EAS: span.EAS, EASFrom: span.Source, Window: span.Advertised, Encoding: span.Encoding,
	}, nil
}

// subagentsOf are those of the agent that a task was opened with.
func subagentsOf(st *state.State) []op.Agent {
	if st.Opened.Agent == nil {
		return nil
	}
	return st.Opened.Agent.Subagents
}
