package knowledgebase

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/folder"
)

// Act is what a user decides about a card.
type Act string

// The acts. A card's states and the acts between them:
//
//	draft ──approve→ reviewed ──retire→ retired ──restore→ what it was
//	draft ──reject→ retired
//	draft, reviewed ──supersede→ superseded ──restore→ what it was
const (
	Approve   Act = "approve"
	Reject    Act = "reject"
	Retire    Act = "retire"
	Restore   Act = "restore"
	Supersede Act = "supersede"
)

// Decision is one decision about some cards.
type Decision struct {
	Act    Act
	IDs    []string
	By     string // for Supersede: the card that takes their place
	Reason string // goes into the history
	// Seen names, by id, the fingerprints of the texts that were decided on
	// ([Store.Text]). A card that says something else by now is not decided
	// about: *[ConflictError].
	Seen map[string]string
}

// StateError says that a card's state does not allow an act.
type StateError struct {
	ID    string
	State card.State
	Act   Act
	Why   string // with the remedy
}

func (e *StateError) Error() string {
	return fmt.Sprintf("%s %s: the card is %s; %s", e.Act, e.ID, e.State, e.Why)
}

// Decide carries a user's decision out: all of it or nothing, in one
// commit. An act that its card's state does not allow is a *[StateError].
func (s *Store) Decide(ctx context.Context, d Decision) ([]Stored, error) {
	ids := slices.Clone(d.IDs)
	slices.Sort(ids)
	if len(ids) == 0 || len(slices.Compact(ids)) < len(d.IDs) {
		return nil, fmt.Errorf("%s: name each card once", d.Act)
	}
	ch := Change{By: Person, Message: d.message(s)}
	for _, id := range d.IDs {
		c, err := s.decided(d, id)
		if err != nil {
			return nil, err
		}
		if err := turn(c, d.Act, s.opts.Now()); err != nil {
			return nil, err
		}
		ch.Cards = append(ch.Cards, c)
	}
	var err error
	switch d.Act {
	case Supersede:
		err = s.claim(&ch, d)
	case Restore:
		err = s.disclaim(&ch, d)
	}
	if err != nil {
		return nil, err
	}
	out, err := s.Apply(ctx, ch)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Act, err)
	}
	return out, nil
}

// decided returns a card of a decision, as it was seen. That it is still so when
// it is written is what Apply sees to.
func (s *Store) decided(d Decision, id string) (*card.Card, error) {
	c, err := s.Get(id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Act, err)
	}
	if mark, given := d.Seen[id]; given && mark != folder.Fingerprint(sha256.Sum256(c.Source())) {
		return nil, &ConflictError{id, s.pathOf(c, nil), "the card has changed since; look at it again"}
	}
	return c, nil
}

// turn moves a card to its next state.
func turn(c *card.Card, act Act, now time.Time) error {
	no := func(why string) error { return &StateError{ID: c.ID, State: c.State, Act: act, Why: why} }
	gone := c.State == card.Retired || c.State == card.Superseded
	switch act {
	case Approve:
		if gone {
			return no("restore it first")
		}
		at := now.UTC().Truncate(time.Second)
		c.State, c.VerifiedAt = card.Reviewed, &at
	case Reject:
		if c.State != card.Draft {
			return no("only drafts are rejected; retire it instead")
		}
		c.State = card.Retired
	case Retire:
		if gone {
			return no("it is not recalled any more")
		}
		c.State = card.Retired
	case Supersede:
		if gone {
			return no("it is not recalled any more")
		}
		c.State = card.Superseded
	case Restore:
		if !gone {
			return no("there is nothing to restore")
		}
		c.State = card.Draft
		if c.VerifiedAt != nil {
			c.State = card.Reviewed
		}
	default:
		return fmt.Errorf("%q is not something to decide about a card", act)
	}
	return nil
}

// claim has the superseding card name what it takes the place of.
func (s *Store) claim(ch *Change, d Decision) error {
	by, err := s.decided(d, d.By)
	if err != nil {
		return err
	}
	if slices.Contains(d.IDs, d.By) {
		return fmt.Errorf("%s: card %s cannot take its own place", d.Act, d.By)
	}
	if by.State == card.Retired || by.State == card.Superseded {
		return &StateError{ID: by.ID, State: by.State, Act: d.Act, Why: "it cannot take another's place; restore it first"}
	}
	for _, id := range d.IDs {
		if !slices.Contains(by.Supersedes, id) {
			by.Supersedes = append(by.Supersedes, id)
		}
	}
	ch.Cards = append(ch.Cards, by)
	return nil
}

// disclaim takes restored cards off the lists of those that had their place.
func (s *Store) disclaim(ch *Change, d Decision) error {
	for _, e := range s.List() {
		if slices.Contains(d.IDs, e.ID) {
			continue
		}
		c, err := s.Get(e.ID)
		if err != nil {
			return fmt.Errorf("%s: %w", d.Act, err)
		}
		had := len(c.Supersedes)
		c.Supersedes = slices.DeleteFunc(c.Supersedes, func(id string) bool { return slices.Contains(d.IDs, id) })
		if len(c.Supersedes) < had {
			ch.Cards = append(ch.Cards, c)
		}
	}
	return nil
}

// message words the commit.
func (d Decision) message(s *Store) string {
	verb := strings.ToUpper(string(d.Act[:min(1, len(d.Act))])) + string(d.Act[min(1, len(d.Act)):])
	var topics []string
	for _, id := range d.IDs {
		if c, err := s.Get(id); err == nil {
			topics = append(topics, c.Topic)
		}
	}
	var m string
	if len(topics) == 1 {
		m = verb + ": " + topics[0]
	} else {
		m = fmt.Sprintf("%s %d cards\n\n- %s", verb, len(d.IDs), strings.Join(topics, "\n- "))
	}
	if by, err := s.Get(d.By); err == nil {
		m += "\n\nIts place takes: " + by.Topic
	}
	if d.Reason != "" {
		m += "\n\n" + card.OneLine(d.Reason)
	}
	return m
}

// SupersededBy returns the ids of the cards that name id as superseded, sorted.
func (s *Store) SupersededBy(id string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []string
	for other, st := range s.cards {
		if slices.Contains(st.Links().Supersedes, id) {
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
		return Stored{}, fmt.Errorf("edit card %s: %w", id, card.Errorf(0, "its id became %q; an id stays what it is", c.ID))
	}
	ch := Change{By: Person, Message: "Edit card: " + c.Topic, Cards: []*card.Card{c}, Over: map[string]string{id: fingerprint}}
	out, err := s.Apply(ctx, ch)
	if err != nil {
		return Stored{}, err
	}
	return out[0], nil
}

// verify keeps the date of a card's verification a user's: a review made by
// writing the state into the text is dated now, and the program sets none.
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
		at := now.UTC().Truncate(time.Second)
		c.VerifiedAt = &at
	}
	return nil
}

// Text returns a card's text as it counts here, which is its file's unless a
// project ships it as reviewed, and the file's fingerprint.
func (s *Store) Text(id string) (text []byte, fingerprint string, err error) {
	if err := s.freshen(); err != nil {
		return nil, "", err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, "", ErrClosed
	}
	st := s.cards[id]
	if st == nil {
		return nil, "", fmt.Errorf("card %q: %w", id, ErrNotFound)
	}
	return st.Card().Markdown(), st.Fingerprint(), nil
}
