package dream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
)

// Dreamed is what one dream did.
type Dreamed struct {
	Proposed []*Proposal `json:"proposed"`
	Declined []string    `json:"declined"` // groups in which the model saw no one lesson, or which it could not write
	Known    int         `json:"known"`    // groups proposed before
	More     int         `json:"more"`     // groups beyond the number that was asked for
	Stored   bool        `json:"stored"`
}

// Run proposes a card for each of the first groups of a store that were not proposed
// before. A dry run stores none.
func (w Writer) Run(ctx context.Context, store *knowledgebase.Store, groups int, dry bool) (*Dreamed, error) {
	found, err := Find(ctx, store)
	if err != nil {
		return nil, err
	}
	got := &Dreamed{Proposed: []*Proposal{}, Declined: []string{}, Known: found.Known, More: max(0, len(found.Groups)-groups), Stored: !dry}
	for _, g := range found.Groups[:len(found.Groups)-got.More] {
		p, err := w.Write(ctx, g, time.Now())
		switch {
		case ctx.Err() != nil:
			return nil, err
		case err != nil:
			got.Declined = append(got.Declined, err.Error())
			continue
		}
		if !dry {
			again, err := p.store(ctx, store)
			if err != nil {
				return nil, err
			}
			if again {
				got.Known++
				continue
			}
		}
		got.Proposed = append(got.Proposed, p)
	}
	return got, nil
}

// store stores a proposal and reports whether there was a card of it already.
func (p *Proposal) store(ctx context.Context, store *knowledgebase.Store) (again bool, err error) {
	if _, err := store.Get(p.Card.ID); err == nil {
		return true, nil
	} else if !errors.Is(err, knowledgebase.ErrNotFound) {
		return false, err
	}
	_, err = store.Apply(ctx, knowledgebase.Change{Message: fmt.Sprintf("Dream: %s\n\nDrawn from %s", p.Card.Topic, strings.Join(p.Card.Generalizes, " ")), Cards: []*card.Card{p.Card}})
	return false, err
}
