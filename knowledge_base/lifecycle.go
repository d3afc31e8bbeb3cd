package knowledgebase

import (
	"context"
	"fmt"
	"slices"
	"time"

	"anamnesis/knowledge_base/card"
)

// SupersededBy returns the ids of the cards that name id as superseded, sorted.
func (s *Store) SupersededBy(id string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []string
	for other, st := range s.cards {
		if slices.Contains(st.Supersedes, id) {
			out = append(out, other)
		}
	}
	slices.Sort(out)
	return out
}

// Edit replaces a card's text by what a user made of it. fingerprint is
// that of the text they began with ([Store.Text]); where the file is another
// by now, the edit is refused with a *[ConflictError]. A card whose state
// becomes reviewed counts as verified now.
func (s *Store) Edit(ctx context.Context, id, fingerprint string, text []byte) (Stored, error) {
	c, err := card.Parse(text)
	if err != nil {
		return Stored{}, fmt.Errorf("edit card %s: %w", id, err)
	}
	if c.ID != id {
		err := card.Errorf(0, "its id became %q; an id stays what it is", c.ID)
		return Stored{}, fmt.Errorf("edit card %s: %w", id, err)
	}
	out, err := s.Apply(ctx, Change{
		By: Person, Message: "Edit card: " + c.Topic, Cards: []*card.Card{c}, Over: map[string]string{id: fingerprint},
	})
	if err != nil {
		return Stored{}, err
	}
	return out[0], nil
}

// verify refuses a date of verification that the program sets. If a user reviews a card by writing the state into its
// text, it sets the date to now.
func verify(c, old *card.Card, ch *Change, now time.Time) error {
	by := ch.By
	if by == Person && ch.TakesBack {
		return nil
	}
	var was *time.Time
	if old != nil {
		was = old.VerifiedAt
	}
	same := c.VerifiedAt == was || c.VerifiedAt != nil && was != nil && c.VerifiedAt.Equal(*was)
	if by == Program && c.VerifiedAt != nil && !same {
		return card.Errorf(0, "verified_at is set by people only; leave it out")
	}
	if by == Person && old != nil && c.State == card.Reviewed && old.State != card.Reviewed && same {
		c.VerifiedAt = new(now.UTC().Truncate(time.Second))
	}
	return nil
}

// Text returns a card's text as it counts here, which is its file's unless a
// project ships it as reviewed, and the file's fingerprint.
func (s *Store) Text(id string) (text []byte, fingerprint string, err error) {
	st, err := s.stored(id)
	if err != nil {
		return nil, "", err
	}
	return st.Card.Clone().Markdown(), st.Fingerprint(), nil
}
