//go:build unix

package main

import (
	"context"
	"fmt"

	"anamnesis/cmd/internal/cardfile"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/session"
)

type handoutFlags struct{ check, yes bool }

// handOut writes the project's cards for agents that run no hook.
func (a *app) handOut(ctx context.Context, args []string, store *knowledgebase.Store, f handoutFlags) error {
	own := projectKB()
	stores := []*knowledgebase.Store{store}
	if own != "" && own != store.Dir() {
		project, err := a.openKB(own, existing, knowledgebase.Options{})
		if err != nil {
			return err
		}
		defer project.Close()
		stores = append(stores, project)
	}
	svc, err := a.service()
	if err != nil {
		return err
	}
	dir, err := session.RealDir(".")
	if err != nil {
		return err
	}
	_, told, err := memory.TellFacts(svc.Home, dir)
	if err != nil {
		a.notef("%v", err)
	}
	var lines []string
	for _, fact := range told {
		lines = append(lines, fact.Brief())
	}
	h, err := cardfile.PlanHandout(stores, own, lines, args)
	// A change that is refused is shown, too: it shows the user what prevents it.
	if h != nil && !a.json {
		for _, c := range h.Changes {
			a.printf("%s", view.Clean(show.LineDiff(c.Path, c.Before, c.Now)))
		}
		a.printf("%s", h.LeftOut())
	}
	switch {
	case err != nil:
		return err
	case f.check && len(h.Changes) > 0:
		return fmt.Errorf("%s differs from the cards: 'anamnesis kb export' without --check writes it", h.Target)
	case !f.check && len(h.Changes) > 0 && !f.yes:
		unasked := exit.Usagef("nothing was written: add --yes to write it without being asked")
		if err := a.tty().Agree(ctx, "write it? [y/N] ", unasked, "nothing was written"); err != nil {
			return err
		}
	}
	if !f.check {
		if err := h.Apply(); err != nil {
			return err
		}
	}
	return a.show(h, func() { a.println(h) })
}
