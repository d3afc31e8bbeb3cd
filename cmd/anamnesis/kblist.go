//go:build unix

package main

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/cardfile"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
)

func (a *app) kbListCommand(dir *string) *cobra.Command {
	var states []string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the cards, newest first",
		RunE: a.withKB(dir, existing, func(cmd *cobra.Command, _ []string, store *knowledgebase.Store) error {
			for _, s := range states {
				if !card.State(s).Valid() {
					return exit.Usagef("--state %s: unknown; use draft, reviewed, retired or superseded", s)
				}
			}
			entries := slices.DeleteFunc(store.List(), func(e knowledgebase.Entry) bool {
				return len(states) > 0 && !slices.Contains(states, string(e.State))
			})
			return a.show(map[string]any{"cards": entries, "broken": cardfile.Broken(store)}, func() {
				if len(entries) == 0 {
					a.notef("no cards to list; tasks write them, and 'anamnesis kb new' adds one")
				}
				for _, e := range entries {
					a.println(view.Fit(a.stdout, e.Created.Format(time.DateOnly)+"  "+e.ID+"  "+view.Clean(e.Topic)+
						" ("+show.Marks(store, e)+")"))
				}
			})
		}),
	}
	a.jsonFlag(cmd, "one JSON object")
	cmd.Flags().StringSliceVar(&states, "state", nil, "only these states: draft, reviewed, retired, superseded")
	return cmd
}

func (a *app) kbShowCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Print one card",
		Args:  cobra.ExactArgs(1),
		RunE: a.onCard(dir, func(cmd *cobra.Command, id string, store *knowledgebase.Store) error {
			c, err := store.Get(id)
			if err != nil {
				return err
			}
			return a.show(c, func() { a.printf("%s", view.Clean(string(c.Markdown()))) })
		}),
	}
	return a.jsonFlag(cmd, "one JSON object")
}
