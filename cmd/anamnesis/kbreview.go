//go:build unix

package main

import (
	"context"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/cardfile"
	"anamnesis/cmd/internal/exit"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/review"
)

// reviewAtOnce is the default number of cards in one review, a short reading.
const reviewAtOnce = 20

type reviewFlags struct {
	print  bool
	apply  string
	number int
}

func (a *app) kbReviewCommand(dir *string) *cobra.Command {
	var f reviewFlags
	cmd := &cobra.Command{
		Use:   "review",
		Short: "Review the waiting cards in $EDITOR",
		Long: `Open the waiting cards (drafts, and reviewed cards past their date) as one text in $VISUAL or
$EDITOR. When you close the editor, the cards become what the text says: 'state: reviewed'
approves, 'state: retired' rejects, 'supersedes: [ID]' merges, other changes edit the card. All
changes are one commit; if a card has changed since, none is made.

Without a terminal, --print writes that text and --apply FILE applies an edited one.`,
		RunE: a.withKB(dir, existing, func(cmd *cobra.Command, _ []string, store *knowledgebase.Store) error {
			if f.number < 1 || f.number > review.MaxCards {
				return exit.Usagef("-n %d: 1 to %d cards can be reviewed at once", f.number, review.MaxCards)
			}
			return a.kbReview(cmd.Context(), store, f)
		}),
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.print, "print", false, "print the text and change nothing")
	fl.StringVar(&f.apply, "apply", "", "apply the edited text of this file; - is standard input")
	fl.IntVarP(&f.number, "number", "n", reviewAtOnce, "how many cards at once")
	return a.jsonFlag(cmd, "one JSON object")
}

func (a *app) kbReview(ctx context.Context, store *knowledgebase.Store, f reviewFlags) error {
	if f.apply != "" {
		doc, err := a.desk().ReadReview(f.apply)
		if err != nil {
			return exit.Usagef("kb review: %w", err)
		}
		return a.applyReview(ctx, store, cardfile.Draft{Path: f.apply}, doc)
	}
	items, more, err := review.Queue(ctx, store, f.number)
	if err != nil {
		return err
	}
	switch {
	case f.print && a.json:
		return a.printJSON(map[string]any{"items": items, "more": more})
	case f.print:
		_, err := a.stdout.Write(review.Compose(items))
		return err
	case len(items) == 0 && a.json:
		return a.printJSON(review.Outcome{})
	case len(items) == 0:
		a.println("no card waits for a review")
		return nil
	}
	if more > 0 {
		a.notef("the first %d; %d more wait", len(items), more)
	}
	d, doc, err := a.desk().Edit(ctx, "review.md", review.Compose(items), "name the text with --apply")
	if err != nil {
		return exit.Usagef("kb review: %w", err)
	}
	return a.applyReview(ctx, store, d, doc)
}

// applyReview applies the text. If that fails, the text stays in its file.
func (a *app) applyReview(ctx context.Context, store *knowledgebase.Store, d cardfile.Draft, doc []byte) error {
	out, err := review.Apply(ctx, store, doc)
	if err != nil {
		return d.RefusedReview(err)
	}
	d.Drop()
	a.warnHistory(store)
	return a.show(out, func() { a.out().Reviewed(out) })
}
