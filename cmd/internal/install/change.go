//go:build unix

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"anamnesis/cmd/internal/exit"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/taskdir"
)

// Verb is what is done with the configuration of an agent.
type Verb string

const (
	Add    Verb = "install"
	Remove Verb = "uninstall"
)

type Change struct {
	Agent   sessions.Agent
	Files   []File
	Problem error             // names the files that a removal cannot free of our entries
	Purge   []taskdir.Summary // recorded sessions that are deleted
}

// Here returns the places of this user and this program.
func Here(h taskdir.Home, getenv func(string) string) (*Places, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Places{Home: getenv("HOME"), State: h.State, Program: program, Getenv: getenv}
	if getenv("ANAMNESIS_HOME") != "" { // it may be relative
		p.Data = h.State
	}
	return p, nil
}

func (p *Places) Configured() ([]sessions.Agent, error) {
	agents := slices.DeleteFunc(sessions.Agents(), func(agent sessions.Agent) bool { return !p.Found(agent) })
	if len(agents) == 0 {
		return nil, exit.Usagef("no agent has a configuration in %s", p.Home)
	}
	return agents, nil
}

// Changes returns what a verb changes for some agents, without those that need no change.
func (p *Places) Changes(v Verb, agents []sessions.Agent) ([]Change, error) {
	var changes []Change
	for _, agent := range agents {
		c := Change{Agent: agent}
		var err error
		if v == Remove {
			c.Files, c.Problem = p.PlanRemoval(agent)
		} else if c.Files, err = p.Plan(agent); errors.Is(err, ErrConfig) {
			return nil, exit.Usagef("nothing was changed: %w", err)
		}
		if err != nil {
			return nil, err
		}
		if len(c.Files) > 0 || c.Problem != nil {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

func AddPurge(h taskdir.Home, agents []sessions.Agent, changes []Change) ([]Change, error) {
	for _, agent := range agents {
		list, err := beside.SessionsOf(h, agent)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(changes, func(c Change) bool { return c.Agent == agent })
		if i < 0 && len(list) > 0 {
			i, changes = len(changes), append(changes, Change{Agent: agent})
		}
		if i >= 0 {
			changes[i].Purge = list
		}
	}
	return changes, nil
}

// Apply makes a change. A removal ends the recorders.
func (p *Places) Apply(ctx context.Context, svc *session.Service, v Verb, c Change) error {
	do := p.Install
	if v == Remove {
		do = p.Uninstall
	}
	if len(c.Files) > 0 {
		if err := do(c.Agent, c.Files); err != nil {
			return fmt.Errorf("%s for %s: %w", v, c.Agent, err)
		}
	}
	// Only now, since hooks that were left would start another recorder; and before the purge of what it writes.
	if v == Remove {
		if _, err := beside.StopRecorders(ctx, svc.Home); err != nil {
			return err
		}
	}
	if len(c.Purge) == 0 {
		return nil
	}
	return beside.Purge(ctx, svc, c.Purge)
}
