//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"anamnesis/cmd/internal/cardfile"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/handout"
	"anamnesis/orchestrator/session"
	"anamnesis/worldstate"
)

type handoutFlags struct{ agentsMD, skill, check, yes bool }

// handOut writes the project's cards for agents that run no hook.
func (a *app) handOut(ctx context.Context, args []string, store *knowledgebase.Store, f handoutFlags) error {
	if f.agentsMD == f.skill {
		return exit.Usagef("--agents-md and --skill: name one of them")
	}
	dir, err := session.RealDir(".")
	if err != nil {
		return err
	}
	repo := worldstate.RepositoryName(dir)
	cards, err := a.projectCards(store, repo)
	if err != nil {
		return err
	}
	cards = handout.Select(cards, repo, time.Now())
	plan, target := handout.PlanSection, "AGENTS.md"
	if f.skill {
		plan, target = handout.PlanSkill, filepath.Join(".agents", "skills")
	}
	if len(args) == 1 {
		target = args[0]
	}
	changes, held, err := plan(target, cards)
	if errors.Is(err, handout.ErrEdited) {
		return exit.With(exit.Refused, fmt.Errorf("%w; take your words out of the marks, or remove the marks and what they hold, and export again", err))
	}
	if err != nil {
		return err
	}
	report := struct {
		Cards   int      `json:"cards"`
		Changed []string `json:"changed"`
	}{held, []string{}}
	for _, c := range changes {
		report.Changed = append(report.Changed, c.Path)
		if !a.json {
			a.printf("%s", view.Clean(show.LineDiff(c.Path, c.Before, c.Now)))
		}
	}
	switch {
	case f.check && len(changes) > 0:
		return fmt.Errorf("%s does not say what the cards say: 'anamnesis kb export' without --check writes it", target)
	case !f.check && len(changes) > 0 && !f.yes:
		if !a.interactive() {
			return exit.Usagef("nothing was written: add --yes to write it without being asked")
		}
		answer, err := a.askLine(ctx, "write it? [y/N] ")
		if err != nil {
			return err
		}
		if !isYes(answer) {
			return exit.With(exit.Refused, errors.New("nothing was written"))
		}
	}
	if !f.check {
		for _, c := range changes {
			if err := c.Apply(); err != nil {
				return fmt.Errorf("write %s: %w", c.Path, err)
			}
		}
	}
	return a.show(report, func() {
		a.printf("%d of %d reviewed cards of this project in %s, %d files changed\n", held, len(cards), target, len(changes))
	})
}

// projectCards reads the cards of a store, and those that the project itself keeps,
// which are about it.
func (a *app) projectCards(store *knowledgebase.Store, repo string) ([]*card.Card, error) {
	stores := []*knowledgebase.Store{store}
	own := projectKB()
	if own != "" && own != store.Dir() {
		project, err := a.openKB(own, false, knowledgebase.Options{})
		if err != nil {
			return nil, err
		}
		defer project.Close()
		stores = append(stores, project)
	}
	return cardfile.Collect(stores, own, repo)
}
