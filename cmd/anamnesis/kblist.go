//go:build unix

package main

import (
	"slices"
	"time"

	"anamnesis/cmd/internal/cardfile"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"

	"github.com/spf13/cobra"
)

// kbFilter is which cards 'kb list' shows.
type kbFilter struct {
	states  []string
	expired bool
}

func (f kbFilter) check() error {
	for _, s := range f.states {
		if !card.State(s).Valid() {
			return exit.Usagef("--state %s: unknown; use draft, reviewed, retired or superseded", s)
		}
	}
	return nil
}

func (f kbFilter) shows(e knowledgebase.Entry) bool {
	return (len(f.states) == 0 || slices.Contains(f.states, string(e.State))) && (!f.expired || e.Expired)
}

func (a *app) kbListCommand(dir *string) *cobra.Command {
	var filter kbFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the cards, newest first",
		RunE: a.withKB(dir, false, func(cmd *cobra.Command, _ []string, store *knowledgebase.Store) error {
			if err := filter.check(); err != nil {
				return err
			}
			entries := slices.DeleteFunc(store.List(), func(e knowledgebase.Entry) bool { return !filter.shows(e) })
			return a.show(map[string]any{"cards": entries, "broken": cardfile.Broken(store)}, func() {
				for _, e := range entries {
					a.println(view.Fit(a.stdout, e.Created.Format(time.DateOnly)+"  "+e.ID+"  "+view.Clean(e.Topic)+" ("+show.Marks(store, e)+")"))
				}
			})
		}),
	}
	a.jsonFlag(cmd, "one JSON object")
	cmd.Flags().StringSliceVar(&filter.states, "state", nil, "only cards in these states (draft, reviewed, retired, superseded)")
	cmd.Flags().BoolVar(&filter.expired, "expired", false, "only cards past their date")
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
