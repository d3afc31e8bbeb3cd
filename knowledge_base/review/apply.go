package review

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
)

// Outcome counts what an applied review did.
type Outcome struct {
	Approved   []string `json:"approved"`
	Rejected   []string `json:"rejected"`
	Changed    []string `json:"changed"` // the text, beside any state
	Superseded []string `json:"superseded"`
	Left       []string `json:"left"`
}

// StaleError says that cards were changed after the text was made. Nothing
// was applied.
type StaleError struct{ IDs []string }

func (e *StaleError) Error() string {
	return fmt.Sprintf("changed since this review was begun: %s; nothing was applied", strings.Join(e.IDs, " "))
}

// TextError says which card's text in the document is not a card.
type TextError struct {
	ID  string
	Err *card.Error // its line counts in the document
}

func (e *TextError) Error() string { return fmt.Sprintf("card %s: %v", e.ID, e.Err) }
func (e *TextError) Unwrap() error { return e.Err }

// Apply makes the cards what the document says, as one change: all of it or
// nothing. A document that cannot be read is a *[SyntaxError] or *[TextError],
// one whose cards have changed meanwhile a *[StaleError].
func Apply(ctx context.Context, store *knowledgebase.Store, doc []byte) (*Outcome, error) {
	wishes, err := Parse(doc)
	if err != nil {
		return nil, err
	}
	p := plan{store: store, out: Outcome{Approved: []string{}, Rejected: []string{}, Changed: []string{}, Superseded: []string{}, Left: []string{}},
		cards: make(map[string]*card.Card), over: make(map[string]string)}
	for _, w := range wishes {
		if err := p.add(w); err != nil {
			return nil, err
		}
	}
	if len(p.stale) > 0 {
		return nil, &StaleError{p.stale}
	}
	if err := p.merge(); err != nil {
		return nil, err
	}
	if len(p.order) == 0 {
		return &p.out, nil
	}
	ch := knowledgebase.Change{By: knowledgebase.Person, Message: p.message(), Over: p.over}
	for _, id := range p.order {
		ch.Cards = append(ch.Cards, p.cards[id])
	}
	_, err = store.Apply(ctx, ch)
	var conflict *knowledgebase.ConflictError
	if errors.As(err, &conflict) {
		return nil, &StaleError{[]string{conflict.ID}}
	}
	if err != nil {
		return nil, fmt.Errorf("apply review: %w", err)
	}
	return &p.out, nil
}

// plan is what a document asks for.
type plan struct {
	store *knowledgebase.Store
	out   Outcome
	cards map[string]*card.Card
	order []string
	over  map[string]string
	stale []string
}

func (p *plan) put(c *card.Card, fingerprint string) {
	if p.cards[c.ID] == nil {
		p.order = append(p.order, c.ID)
	}
	p.cards[c.ID], p.over[c.ID] = c, fingerprint
}

// add plans one wish.
func (p *plan) add(w Wish) error {
	text, fingerprint, err := p.store.Text(w.ID)
	if errors.Is(err, knowledgebase.ErrNotFound) {
		p.stale = append(p.stale, w.ID)
		return nil
	}
	if err != nil {
		return fmt.Errorf("apply review: %w", err)
	}
	if fingerprint != w.Fingerprint {
		p.stale = append(p.stale, w.ID)
		return nil
	}
	if bytes.Equal(normal(text), w.Text) {
		p.out.Left = append(p.out.Left, w.ID)
		return nil
	}
	c, err := card.Parse(w.Text)
	var fault *card.Error
	if errors.As(err, &fault) {
		return &TextError{w.ID, &card.Error{Line: w.Line - 1 + max(1, fault.Line), What: fault.What}}
	}
	if err != nil {
		return fmt.Errorf("apply review: %w", err)
	}
	if c.ID != w.ID {
		return &TextError{w.ID, &card.Error{Line: w.Line, What: fmt.Sprintf("its id became %q; an id stays what it is", c.ID)}}
	}
	old, err := card.Parse(text)
	if err != nil {
		return fmt.Errorf("apply review: %w", err)
	}
	p.count(old, c)
	p.put(c, fingerprint)
	return nil
}

func (p *plan) count(old, c *card.Card) {
	if c.State != old.State {
		switch c.State {
		case card.Reviewed:
			p.out.Approved = append(p.out.Approved, c.ID)
		case card.Retired:
			p.out.Rejected = append(p.out.Rejected, c.ID)
		case card.Superseded:
			p.out.Superseded = append(p.out.Superseded, c.ID)
		}
	}
	plain := old.Clone()
	plain.State = c.State
	if !bytes.Equal(normal(plain.Markdown()), normal(c.Markdown())) {
		p.out.Changed = append(p.out.Changed, c.ID)
	}
}

// merge has the cards that a changed card newly names as superseded follow.
func (p *plan) merge() error {
	for _, id := range slices.Clone(p.order) {
		c := p.cards[id]
		if c.State == card.Retired || c.State == card.Superseded {
			continue
		}
		for _, other := range c.Supersedes {
			if other == id {
				return &TextError{id, card.Errorf(0, "it names itself under supersedes; take that out")}
			}
			if err := p.supersede(id, other); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *plan) supersede(by, id string) error {
	c := p.cards[id]
	if c == nil {
		text, fingerprint, err := p.store.Text(id)
		if errors.Is(err, knowledgebase.ErrNotFound) {
			return &TextError{by, card.Errorf(0, "it supersedes %s, which is no card here; correct the id", id)}
		}
		if err != nil {
			return fmt.Errorf("apply review: %w", err)
		}
		if c, err = card.Parse(text); err != nil {
			return fmt.Errorf("apply review: %w", err)
		}
		if c.State == card.Superseded || c.State == card.Retired {
			return nil
		}
		p.put(c, fingerprint)
		p.out.Left = slices.DeleteFunc(p.out.Left, func(left string) bool { return left == id })
	}
	if c.State != card.Superseded {
		c.State = card.Superseded
		p.out.Superseded = append(p.out.Superseded, id)
	}
	return nil
}

// message words the commit.
func (p *plan) message() string {
	var parts []string
	for _, n := range []struct {
		what string
		ids  []string
	}{{"approved", p.out.Approved}, {"rejected", p.out.Rejected}, {"superseded", p.out.Superseded}, {"changed", p.out.Changed}} {
		if len(n.ids) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", len(n.ids), n.what))
		}
	}
	var topics []string
	for _, id := range p.order {
		topics = append(topics, fmt.Sprintf("- %s: %s", p.cards[id].State, p.cards[id].Topic))
	}
	return "Review: " + strings.Join(parts, ", ") + "\n\n" + strings.Join(topics, "\n")
}
