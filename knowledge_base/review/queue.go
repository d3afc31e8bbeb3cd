package review

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/usage"
)

// Waiting lists the cards that wait for a user: drafts, and reviewed cards past their date or
// contradicted by several tasks since they were reviewed.
// Those whose lesson most tasks learned again or met come first; of equals, the oldest.
func Waiting(store *knowledgebase.Store) []knowledgebase.Entry {
	waiting := slices.DeleteFunc(store.List(), func(e knowledgebase.Entry) bool {
		return e.State != card.Draft && (e.State != card.Reviewed || !e.Expired && !doubted(e))
	})
	slices.Reverse(waiting)
	again := func(e knowledgebase.Entry) int { return e.Counts.Rediscovered + e.Counts.Met }
	slices.SortStableFunc(waiting, func(a, b knowledgebase.Entry) int { return again(b) - again(a) })
	return waiting
}

// doubted reports whether several tasks contradicted a reviewed card since it held or was approved last.
func doubted(e knowledgebase.Entry) bool {
	return e.State == card.Reviewed && e.Counts.Refutes()
}

// Item is a card that waits for a decision.
type Item struct {
	ID          string     `json:"id"`
	State       card.State `json:"state"`
	Fingerprint string     `json:"fingerprint"` // of Text
	Text        []byte     `json:"-"`
	Notes       []string   `json:"notes"` // one line each
}

// Queue returns the first n of the waiting cards with what a reader should know
// of them. more is the number of further ones.
func Queue(ctx context.Context, store *knowledgebase.Store, n int) (items []Item, more int, err error) {
	waiting := Waiting(store)
	more = max(0, len(waiting)-n)
	for _, e := range waiting[:len(waiting)-more] {
		text, fingerprint, err := store.Text(e.ID)
		if err != nil {
			return nil, 0, fmt.Errorf("review queue: %w", err)
		}
		it := Item{ID: e.ID, State: e.State, Fingerprint: fingerprint, Text: text}
		it.Notes = append(Notes(store, e), uses(e.Counts)...)
		for _, id := range e.Contradicts {
			it.Notes = append(it.Notes, quoted(store, id)...)
		}
		near, err := store.Near(ctx, e.ID)
		if err != nil {
			return nil, 0, fmt.Errorf("review queue: %w", err)
		}
		for _, m := range near {
			if !slices.Contains(e.Generalizes, m.ID) && !slices.Contains(e.Contradicts, m.ID) { // named above
				it.Notes = append(it.Notes, "may say the same as, or the opposite of, "+about(store, m.ID))
			}
		}
		items = append(items, it)
	}
	return items, more, nil
}

// maxQuotedLines is how much of a card that another contradicts is shown beside it.
const maxQuotedLines = 60

// quoted returns a card's body as lines of notes, so that both versions of what
// was changed on two sides are read together.
func quoted(store *knowledgebase.Store, id string) []string {
	c, err := store.Get(id)
	if err != nil {
		return nil // named as such by the notes
	}
	lines := strings.Split(strings.TrimSpace(string(c.Body())), "\n")
	out := []string{id + " says:"}
	for i, line := range lines {
		if i == maxQuotedLines {
			return append(out, fmt.Sprintf("… and %d more lines of %s", len(lines)-i, id))
		}
		out = append(out, line)
	}
	return out
}

// Notes are what a reader should know of a card beside its text and beside the
// cards it resembles, a line each.
func Notes(store *knowledgebase.Store, e knowledgebase.Entry) (out []string) {
	if e.Tainted && e.State == card.Draft {
		out = append(out, "drawn from outside text: no other task is shown it before you approve it, "+
			"and exports leave it out")
	}
	if e.Expired {
		out = append(out, "past its date: approve it again if it still holds, or retire it")
	}
	if doubted(e) {
		out = append(out, fmt.Sprintf("%d tasks that were shown it contradicted it: "+
			"approve it again if it still holds, or retire it", e.Counts.Contradicted))
	}
	for _, id := range e.Contradicts {
		out = append(out, "contradicts "+about(store, id))
	}
	if len(e.Generalizes) > 0 {
		out = append(out, fmt.Sprintf("drawn from %d cards, which stay as they are; "+
			"no task is shown it before you approve it", len(e.Generalizes)))
		for _, id := range e.Generalizes {
			out = append(out, "instance "+about(store, id))
		}
	}
	return out
}

// uses says in at most one line what a card did for the tasks that were shown it.
func uses(c usage.Counts) []string {
	if c == (usage.Counts{}) {
		return nil
	}
	return []string{fmt.Sprintf("times shown: %d; tasks that followed it: %d; in which it held: %d; "+
		"that contradicted it: %d; times learned again: %d",
		c.Shown, c.Followed, c.Held+c.Verified, c.Contradicted, c.Rediscovered)}
}

func about(store *knowledgebase.Store, id string) string {
	c, err := store.Get(id)
	if err != nil {
		return id + ", which is no card here"
	}
	var first string
	for label, text := range c.Bullets() {
		line, _, _ := strings.Cut(text, "\n")
		first = "; " + label + ": " + line
		break
	}
	return fmt.Sprintf("%s (%s, %s): %s%s", id, c.State, c.Created.Format(time.DateOnly), c.Topic, first)
}
