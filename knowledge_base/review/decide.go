// Package review decides about cards: which of them wait for a user and what is known of them, the
// decisions, and a desk at which they can be taken back.
package review

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/usage"
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
	// Untaint removes the taint of the cards: the user has checked that their text holds nothing
	// from outside the project.
	Untaint bool
	// Seen names, by id, the fingerprints of the texts that were decided on
	// ([knowledgebase.Store.Text]). A card that says something else by now is not decided
	// about: *[knowledgebase.ConflictError].
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

// Decide applies a user's decision as a whole or not at all, in one commit. An act that its card's
// state does not allow is a *[StateError].
func Decide(ctx context.Context, s *knowledgebase.Store, d Decision) ([]knowledgebase.Stored, error) {
	ids := slices.Clone(d.IDs)
	slices.Sort(ids)
	if len(ids) == 0 || len(slices.Compact(ids)) < len(d.IDs) {
		return nil, fmt.Errorf("%s: name each card once", d.Act)
	}
	ch := knowledgebase.Change{By: knowledgebase.Person, Message: d.message(s)}
	for _, id := range d.IDs {
		c, err := seen(s, d, id)
		if err != nil {
			return nil, err
		}
		if err := turn(c, d.Act, s.Now()); err != nil {
			return nil, err
		}
		c.Provenance.Tainted = c.Provenance.Tainted && !d.Untaint
		ch.Cards = append(ch.Cards, c)
	}
	var err error
	switch d.Act {
	case Supersede:
		err = claim(s, &ch, d)
	case Restore:
		err = disclaim(s, &ch, d)
	}
	if err != nil {
		return nil, err
	}
	// The count follows the decision: a crash in between loses a count, and no decision.
	out, err := s.Apply(ctx, ch)
	if err == nil && d.Act == Approve {
		var approved []usage.Event
		for _, id := range d.IDs {
			approved = append(approved, usage.Event{Card: id, What: usage.Approved})
		}
		err = s.Count(approved...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Act, err)
	}
	return out, nil
}

// seen returns a card of a decision, as it was seen. Apply makes sure that it is still so
// when it is written.
func seen(s *knowledgebase.Store, d Decision, id string) (*card.Card, error) {
	c, err := s.Get(id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Act, err)
	}
	if mark, given := d.Seen[id]; given && mark != folder.Fingerprint(sha256.Sum256(c.Source())) {
		const why = "the card has changed since; look at it again"
		return nil, &knowledgebase.ConflictError{ID: id, Path: s.PathOf(c), Why: why}
	}
	return c, nil
}

func turn(c *card.Card, act Act, now time.Time) error {
	no := func(why string) error { return &StateError{ID: c.ID, State: c.State, Act: act, Why: why} }
	gone := c.State == card.Retired || c.State == card.Superseded
	switch act {
	case Approve:
		if gone {
			return no("restore it first")
		}
		c.State, c.VerifiedAt = card.Reviewed, new(now.UTC().Truncate(time.Second))
		if c.Expired(now) {
			c.Expires = nil // it still holds
		}
	case Reject:
		if c.State != card.Draft {
			return no("only drafts are rejected; retire it instead")
		}
		c.State = card.Retired
	case Retire, Supersede:
		if gone {
			return no("it is not recalled any more")
		}
		if c.State = card.Retired; act == Supersede {
			c.State = card.Superseded
		}
	case Restore:
		if !gone {
			return no("there is nothing to restore")
		}
		c.State = card.Draft
		if c.VerifiedAt != nil { // only reviews set it, and retiring keeps it
			c.State = card.Reviewed
		}
	default:
		return fmt.Errorf("%q is not something to decide about a card", act)
	}
	return nil
}

// claim adds the superseded cards to the list of the card that replaces them.
func claim(s *knowledgebase.Store, ch *knowledgebase.Change, d Decision) error {
	by, err := seen(s, d, d.By)
	if err != nil {
		return err
	}
	if slices.Contains(d.IDs, d.By) {
		return fmt.Errorf("%s: card %s cannot take its own place", d.Act, d.By)
	}
	if by.State == card.Retired || by.State == card.Superseded {
		const why = "it cannot take another's place; restore it first"
		return &StateError{ID: by.ID, State: by.State, Act: d.Act, Why: why}
	}
	for _, id := range d.IDs {
		if !slices.Contains(by.Supersedes, id) {
			by.Supersedes = append(by.Supersedes, id)
		}
	}
	ch.Cards = append(ch.Cards, by)
	return nil
}

// disclaim removes restored cards from the lists of the cards that had replaced them.
func disclaim(s *knowledgebase.Store, ch *knowledgebase.Change, d Decision) error {
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

func (d Decision) message(s *knowledgebase.Store) string {
	verb := strings.ToUpper(string(d.Act[:min(1, len(d.Act))])) + string(d.Act[min(1, len(d.Act)):])
	var topics []string
	for _, id := range d.IDs {
		if c, err := s.Get(id); err == nil {
			topics = append(topics, c.Topic)
		}
	}
	m := fmt.Sprintf("%s %d cards\n\n- %s", verb, len(d.IDs), strings.Join(topics, "\n- "))
	if len(topics) == 1 {
		m = verb + ": " + topics[0]
	}
	if by, err := s.Get(d.By); err == nil {
		m += "\n\nIts place takes: " + by.Topic
	}
	if d.Reason != "" {
		m += "\n\n" + card.OneLine(d.Reason)
	}
	return m
}
