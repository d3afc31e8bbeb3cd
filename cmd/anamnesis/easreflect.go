//go:build unix

package main

import (
	"context"
	"sync"

	"github.com/spf13/cobra"

	"anamnesis/anamnesis/proposal"
	"anamnesis/anamnesis/quote"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/eas"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/taskdir"
)

type reflectFlags struct {
	accept, reject []string
	search         []string
	model, baseURL string
}

func (a *app) easReflectCommand() *cobra.Command {
	var f reflectFlags
	cmd := &cobra.Command{
		Use:   "reflect",
		Short: "Propose changes of the table, to accept or reject one by one",
		Long: `Propose changes of the table of effective attention spans, each with its evidence: results of
'eas probe', and failure rates of your tasks' calls by context length. --accept ID and --reject ID
decide. Accepted proposals go into your overlay. A decided proposal is repeated only if its evidence
changes.

--search MODEL asks your search engine (web.yaml) what was published about a model, and --model
reads the results. A figure counts only if its quote is in the page. Figures found are proposed
until you decide.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.easReflect(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.accept, "accept", nil, "accept a proposal by its id (repeatable)")
	fl.StringArrayVar(&f.reject, "reject", nil, "reject a proposal by its id (repeatable)")
	fl.StringArrayVar(&f.search, "search", nil, "search for what was published about a model (repeatable)")
	fl.StringVar(&f.model, "model", "", "model that reads the results of --search")
	fl.StringVar(&f.baseURL, "base-url", "", "address of an OpenAI-compatible server (default $OPENAI_BASE_URL)")
	return a.jsonFlag(cmd, "one JSON object")
}

func (a *app) easReflect(ctx context.Context, f reflectFlags) error {
	svc, err := a.service()
	if err != nil {
		return err
	}
	h := svc.Home
	var reader func() (model.Model, error)
	if f.model != "" {
		// A model is needed only once a search has found something to read.
		reader = sync.OnceValues(func() (model.Model, error) {
			m, err := a.chooseModel(ctx, f.model, f.baseURL)
			if err != nil {
				return nil, err
			}
			return m.Model, nil
		})
	}
	open, found, notes, err := eas.Propose(ctx, svc, f.search, reader)
	if err != nil {
		return err
	}
	for _, n := range notes {
		a.notef("%s", view.Line(n, 500))
	}
	switch {
	case len(f.accept)+len(f.reject) > 0:
		todo, err := eas.Choose(open, f.accept, f.reject)
		for _, c := range todo {
			if err == nil {
				err = a.decide(h, c.Proposal, c.Decision)
			}
		}
		return err
	case a.json:
		return a.printJSON(
			map[string]any{"proposals": open, "decided": found - len(open), "notes": append([]string{}, notes...)})
	case len(open) == 0:
		a.printf("nothing to propose; %d decided before\n", found)
		return nil
	}
	for _, p := range open {
		a.out().Proposal(p)
	}
	a.printf("%d proposals; --accept ID or --reject ID decides\n", len(open))
	return nil
}

func (a *app) decide(h taskdir.Home, p proposal.Proposal, decision string) error {
	if err := eas.Decide(h, p, decision); err != nil {
		return err
	}
	where := ""
	if decision == proposal.Accepted {
		where = ", in " + h.EASOverlay()
	}
	a.printf("%s %s: %s, eas %d → %d%s\n", decision, p.ID, quote.Squash(p.Row.Pattern), p.Was.EAS, p.Row.EAS, where)
	return nil
}
