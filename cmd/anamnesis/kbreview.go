//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/console"
	"anamnesis/cmd/internal/exit"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/review"
)

const (
	// reviewAtOnce is the default number of cards in one review, a short reading.
	reviewAtOnce = 20
	maxReviewed  = 1000
)

func (a *app) kbReviewCommand(dir *string) *cobra.Command {
	var number int
	cmd := &cobra.Command{
		Use:   "review",
		Short: "Decide about the waiting cards, one after the other",
		Long: `Show the waiting cards (drafts, and reviewed cards past their date) with what is known of each, and
ask about it: y approves, n rejects or retires, e opens it in $VISUAL or $EDITOR and asks again, q
ends, any other key skips. Each decision is a commit. A card that has changed since it was shown is
not decided about.

Without a terminal the cards are printed: 'kb approve', 'kb reject' and 'kb edit' decide.`,
		RunE: a.withKB(dir, existing, func(cmd *cobra.Command, _ []string, store *knowledgebase.Store) error {
			if number < 1 || number > maxReviewed {
				return exit.Usagef("-n %d: 1 to %d cards can be reviewed at once", number, maxReviewed)
			}
			return a.kbReview(cmd.Context(), store, number)
		}),
	}
	cmd.Flags().IntVarP(&number, "number", "n", reviewAtOnce, "how many cards at once")
	return a.jsonFlag(cmd, "one JSON object")
}

func (a *app) kbReview(ctx context.Context, store *knowledgebase.Store, number int) error {
	items, more, err := review.Queue(ctx, store, number)
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(map[string]any{"items": append([]review.Item{}, items...), "more": more})
	case len(items) == 0:
		a.println("no card waits for a review")
		return nil
	}
	for i, it := range items {
		a.out().Waiting(it)
		if !a.interactive() {
			continue
		}
		ended, err := a.reviewCard(ctx, store, it, fmt.Sprintf("(%d of %d)", i+1, len(items)))
		if ended || err != nil {
			return err
		}
	}
	if more > 0 {
		a.notef("the first %d; %d more wait", len(items), more)
	}
	return nil
}

// reviewCard asks the user about a card, again after each edit, and carries the answer out. It reports whether no
// more cards are wanted.
func (a *app) reviewCard(ctx context.Context, store *knowledgebase.Store, it review.Item, at string) (bool, error) {
	refuse := review.Reject
	if it.State == card.Reviewed {
		refuse = review.Retire
	}
	for {
		answer, err := a.tty().Ask(ctx,
			fmt.Sprintf("%s y (approve), n (%s), e (edit), q (quit), anything else skips: ", at, refuse))
		if err != nil {
			return true, err
		}
		d := review.Decision{IDs: []string{it.ID}, Seen: map[string]string{it.ID: it.Fingerprint}}
		switch {
		case console.Yes(answer):
			d.Act = review.Approve
		case strings.EqualFold(answer, "n"), strings.EqualFold(answer, "no"):
			d.Act = refuse
		case strings.EqualFold(answer, "e"):
			if err := a.editCard(ctx, store, it.ID, ""); err != nil {
				a.notef("%v", err) // the user's text is kept, and the card can be edited again
			}
			if it.Text, it.Fingerprint, err = store.Text(it.ID); err != nil {
				return true, err
			}
			continue
		default:
			return strings.EqualFold(answer, "q"), nil
		}
		return false, a.kbDecide(ctx, store, d)
	}
}
