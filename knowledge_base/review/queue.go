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

// Waiting lists the cards that wait for a user, oldest first: drafts, and
// reviewed cards past their date.
func Waiting(store *knowledgebase.Store) []knowledgebase.Entry {
	waiting := slices.DeleteFunc(store.List(), func(e knowledgebase.Entry) bool {
		return e.State != card.Draft && (e.State != card.Reviewed || !e.Expired)
	})
	slices.Reverse(waiting)
	return waiting
}

// Queue returns the first n of the waiting cards with what a reader should know
// of them. more tells how many wait beyond.
func Queue(ctx context.Context, store *knowledgebase.Store, n int) (items []Item, more int, err error) {
	waiting := Waiting(store)
	more = max(0, len(waiting)-n)
	for _, e := range waiting[:len(waiting)-more] {
		text, fingerprint, err := store.Text(e.ID)
		if err != nil {
			return nil, 0, fmt.Errorf("review queue: %w", err)
		}
		it := Item{ID: e.ID, Fingerprint: fingerprint, Text: text, Notes: append(Notes(store, e), Uses(e.Counts)...)}
		for _, id := range e.Contradicts {
			it.Notes = append(it.Notes, quoted(store, id)...)
		}
		near, err := store.Near(ctx, e.ID)
		if err != nil {
			return nil, 0, fmt.Errorf("review queue: %w", err)
		}
		for _, m := range near {
			switch {
			case slices.Contains(e.Generalizes, m.ID), slices.Contains(e.Contradicts, m.ID):
				// named above
			case m.Opposed:
				it.Notes = append(it.Notes, fmt.Sprintf("may say the opposite of %s – decide which holds: state: retired ends this one, 'anamnesis kb retire %s' the other; "+
					"contradicts: [%s] shows both; supersedes: [%s] where they agree after all", about(store, m.ID), m.ID, m.ID, m.ID))
			default:
				it.Notes = append(it.Notes, fmt.Sprintf("may say the same as %s – to merge them here: supersedes: [%s]", about(store, m.ID), m.ID))
			}
		}
		items = append(items, it)
	}
	return items, more, nil
}

// maxQuotedLines is how much of a card that another contradicts stands beside it.
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
			return append(out, fmt.Sprintf("… and %d more lines: 'anamnesis kb show %s'", len(lines)-i, id))
		}
		out = append(out, line)
	}
	return out
}

// Notes are what a reader should know of a card beside its text and beside the
// cards it resembles, one line each.
func Notes(store *knowledgebase.Store, e knowledgebase.Entry) []string {
	out := []string{}
	if e.Tainted && e.State == card.Draft {
		out = append(out, "drawn from outside text: no other task is shown it before you approve it; 'kb export' leaves it out until its header says tainted: false, which states that you checked the text")
	}
	if e.Expired {
		out = append(out, "past its date: move expires, or retire it")
	}
	for _, id := range e.Contradicts {
		out = append(out, fmt.Sprintf("contradicts %s – decide which holds: state: retired ends this one, 'anamnesis kb retire %s' the other", about(store, id), id))
	}
	if len(e.Generalizes) > 0 {
		out = append(out, fmt.Sprintf("drawn from the %d cards below, which stay what they are; no task is shown it before you approve it", len(e.Generalizes)))
		for _, id := range e.Generalizes {
			out = append(out, "instance "+about(store, id))
		}
		out = append(out, fmt.Sprintf("to have it take their place: supersedes: [%s]", strings.Join(e.Generalizes, ", ")))
	}
	return out
}

// Uses says in at most one line what a card did for the tasks that were shown it.
func Uses(c usage.Counts) []string {
	if c == (usage.Counts{}) {
		return nil
	}
	return []string{fmt.Sprintf("times shown: %d; tasks that ended well: %d, badly: %d; times learned again: %d", c.Shown, c.Helpful, c.Harmful, c.Rediscovered)}
}

// about names another card.
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
