//go:build unix

package main

import (
	"context"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/cardfile"
	"anamnesis/cmd/internal/names"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/review"
)

// kbDecideCommands are the verbs by which a user decides about cards.
func (a *app) kbDecideCommands(dir *string) []*cobra.Command {
	return []*cobra.Command{
		a.kbDecideCommand(dir, review.Approve, "approve ID…", "Mark cards as reviewed by you, now"),
		a.kbDecideCommand(dir, review.Reject, "reject ID…", "Reject drafts: they stay in the folder, never recalled"),
		a.kbDecideCommand(dir, review.Retire, "retire ID…", "Retire cards: they stay in the folder, never recalled"),
		a.kbDecideCommand(dir, review.Restore, "restore ID…", "Restore retired or superseded cards"),
		a.kbSupersedeCommand(dir),
	}
}

func (a *app) kbDecideCommand(dir *string, act review.Act, use, short string) *cobra.Command {
	d := review.Decision{Act: act}
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.MinimumNArgs(1),
		RunE: a.withKB(dir, existing, func(cmd *cobra.Command, ids []string, store *knowledgebase.Store) error {
			d.IDs = ids
			return a.kbDecide(cmd.Context(), store, d)
		}),
	}
	a.jsonFlag(cmd, "one JSON object")
	cmd.Flags().StringVar(&d.Reason, "reason", "", "why, for the history")
	if act == review.Approve {
		cmd.Flags().BoolVar(&d.Untaint, "untaint", false,
			"you checked the text: export it, too, though its evidence came from outside the project")
	}
	return cmd
}

func (a *app) kbSupersedeCommand(dir *string) *cobra.Command {
	d := review.Decision{Act: review.Supersede}
	cmd := &cobra.Command{
		Use:   "supersede OLD… NEW",
		Short: "Replace cards by one card",
		Args:  cobra.MinimumNArgs(2),
		RunE: a.withKB(dir, existing, func(cmd *cobra.Command, ids []string, store *knowledgebase.Store) error {
			d.IDs, d.By = ids[:len(ids)-1], ids[len(ids)-1]
			return a.kbDecide(cmd.Context(), store, d)
		}),
	}
	a.jsonFlag(cmd, "one JSON object")
	cmd.Flags().StringVar(&d.Reason, "reason", "", "why, for the history")
	return cmd
}

func (a *app) kbDecide(ctx context.Context, store *knowledgebase.Store, d review.Decision) error {
	svc, err := a.service()
	if err != nil {
		return err
	}
	if err := names.Decided(ctx, svc.Home, store, &d); err != nil {
		return err
	}
	stored, err := review.Decide(ctx, store, d)
	if err != nil {
		return err
	}
	a.warnHistory(store)
	cards, err := cardfile.Reload(store, stored)
	if err != nil {
		return err
	}
	return a.show(map[string]any{"cards": cards}, func() {
		for _, c := range cards {
			a.printf("%s %s  %s\n", c.State, c.ID, view.Clean(c.Topic))
		}
	})
}

func (a *app) warnHistory(store *knowledgebase.Store) {
	if err := store.HistoryError(); err != nil {
		a.notef("written, and not in the folder's history yet: %s", show.OneLine(err.Error()))
	}
}

func (a *app) kbHistoryCommand(dir *string) *cobra.Command {
	var brief bool
	cmd := &cobra.Command{
		Use:   "history ID",
		Short: "Show a card's history as diffs, newest first",
		Args:  cobra.ExactArgs(1),
		RunE: a.onCard(dir, func(cmd *cobra.Command, id string, store *knowledgebase.Store) error {
			revs, err := store.History(cmd.Context(), id)
			if err != nil {
				return err
			}
			return a.show(map[string]any{"id": id, "revisions": revs}, func() { a.out().History(revs, brief) })
		}),
	}
	a.jsonFlag(cmd, "one JSON object")
	cmd.Flags().BoolVar(&brief, "brief", false, "one line a revision, without the diffs")
	return cmd
}
