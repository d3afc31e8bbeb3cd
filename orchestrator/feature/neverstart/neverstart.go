// Package neverstart refuses a call once that never started in earlier tasks of the repository, as its facts say, and
// names what works instead. The same call runs the second time: what was missing may have been installed since.
package neverstart

import (
	"context"

	"anamnesis/anamnesis/facts"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/workspace"
)

// Guard checks the calls of one task.
type Guard struct {
	place *workspace.Place
	known func() []facts.Fact // those of the repository that the model was shown
}

// New returns the guard of a task whose model was shown these facts.
func New(p *workspace.Place, known func() []facts.Fact) *Guard { return &Guard{place: p, known: known} }

// Check refuses a call of a command that never starts here, once for each fact.
func (g *Guard) Check(_ context.Context, c *gate.Call) ([]op.Body, error) {
	command := notice.BashCommand(c.Name, c.Args)
	if command == "" {
		return nil, nil
	}
	f, works := facts.NeverStarts(g.known(), command)
	if f == nil || g.place.State().Calls.NeverStarts[f.ID()] {
		return nil, nil
	}
	why := "Not run, this once. Earlier tasks here: " + f.String() + "."
	for _, w := range works {
		why += " " + w.String() + "."
	}
	return c.Refuse(why+" If something has changed since, make the same call again: it runs.",
		&op.ApprovalDecided{Call: c.ID, Decision: "refuse", By: state.ByNeverStarts, Subjects: []string{f.ID()}}), nil
}
