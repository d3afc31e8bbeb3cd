//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/notes"

	"github.com/spf13/cobra"
)

// kbImported is what an import did.
type kbImported struct {
	Added     []string        `json:"added"`
	There     int             `json:"there_already"`
	Conflicts []string        `json:"conflicts"` // cards a person has decided about since
	Skipped   []notes.Skipped `json:"skipped"`
}

func (a *app) kbImportCommand(dir *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import PATH…",
		Short: "Make drafts of notes (CLAUDE.md, AGENTS.md), folders of markdown, or other people's cards",
		Long: `Make drafts of what is written down already: each section of a markdown file becomes a card, each list item or paragraph a
bullet of it; files that are cards come as they are. All of it waits for your review: no task is shown an imported
card before. Importing again adds only what is new.`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			store, err := a.openKB(*dir, true)
			if err != nil {
				return err
			}
			defer store.Close()
			got := kbImported{Added: []string{}, Conflicts: []string{}, Skipped: []notes.Skipped{}}
			for _, path := range paths {
				if err := kbImport(cmd.Context(), store, path, &got); err != nil {
					return err
				}
			}
			a.warnHistory(store)
			if asJSON {
				return a.printJSON(got)
			}
			for _, s := range got.Skipped {
				fmt.Fprintf(a.stderr, "anamnesis: passed by: %s: %s\n", shownPath(s.Path), oneLine(s.Why))
			}
			for _, id := range got.Conflicts {
				fmt.Fprintf(a.stderr, "anamnesis: %s says something else by now and was decided about: left as it is\n", id)
			}
			_, err = fmt.Fprintf(a.stdout, "%d drafts added, %d there already; 'anamnesis kb review' shows them\n", len(got.Added), got.There)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// kbImport takes one path in, as one change where nothing is in its way.
func kbImport(ctx context.Context, store *knowledgebase.Store, path string, got *kbImported) error {
	cards, skipped, err := notes.Read(ctx, path, time.Now())
	if errors.Is(err, fs.ErrNotExist) {
		return usageError("kb import: %w", err)
	}
	if err != nil {
		return err
	}
	got.Skipped = append(got.Skipped, skipped...)
	var fit []*card.Card
	for _, c := range cards {
		switch old, err := store.Get(c.ID); {
		case c.Validate() != nil:
			got.Skipped = append(got.Skipped, notes.Skipped{Path: path, Why: fmt.Sprintf("%s: %v", c.Topic, c.Validate())})
		case err == nil && (old.Hash() == c.Hash()):
			got.There++
		case err == nil && old.State != card.Draft:
			got.Conflicts = append(got.Conflicts, c.ID)
		default:
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	stored, err := store.Apply(ctx, knowledgebase.Change{By: knowledgebase.Person, Message: fmt.Sprintf("Import %d cards from %s", len(fit), card.OneLine(path)), Cards: fit})
	if err != nil {
		return kbError(err)
	}
	for _, st := range stored {
		if st.Rediscovered {
			got.There++
		} else {
			got.Added = append(got.Added, st.ID)
		}
	}
	return nil
}

func (a *app) kbExportCommand(dir *string) *cobra.Command {
	var asJSON, drafts bool
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the reviewed cards into a new folder for others",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.openKB(*dir, false)
			if err != nil {
				return err
			}
			defer store.Close()
			states := []card.State{card.Reviewed}
			if drafts {
				states = append(states, card.Draft)
			}
			n, err := store.Export(cmd.Context(), args[0], states)
			if errors.Is(err, knowledgebase.ErrNotEmpty) {
				return &exitError{exitRefused, fmt.Errorf("%w; name a new one", err)}
			}
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(map[string]any{"cards": n, "dir": args[0]})
			}
			_, err = fmt.Fprintf(a.stdout, "%d cards in %s\n", n, shownPath(args[0]))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&drafts, "drafts", false, "with the drafts")
	return cmd
}
