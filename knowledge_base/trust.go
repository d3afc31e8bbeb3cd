package knowledgebase

import (
	"context"
	"slices"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
)

// maxWithheld is how many rounds of cards that may not be believed one search
// removes before it answers with what is left.
const maxWithheld = 8

// Search is [Store.Search] over all of the layers. Of cards with one id, or
// with one lesson, the nearest is found. Each layer's hits stay in their order;
// between layers their evidence decides, which is not normalised, and the
// nearest wins a tie. A card that [Query.Trust] withholds takes no part: the
// others are found as if it were not stored.
func (l Layers) Search(ctx context.Context, q Query) ([]recalled.Hit, error) {
	q.without = make(map[string]bool)
	for round := 0; ; round++ {
		hits, err := l.found(ctx, q)
		if err != nil {
			return nil, err
		}
		n := len(hits)
		for i := range hits { // outside the stores' locks: Trust may ask them
			hits[i].Trust = q.trust(hits[i].Card)
		}
		hits = slices.DeleteFunc(hits, func(h recalled.Hit) bool {
			q.without[h.Card.ID] = h.Trust.Withheld
			return h.Trust.Withheld
		})
		if len(hits) == n || round == maxWithheld {
			return hits, nil
		}
	}
}

// trust is how far a card may be believed in this search.
func (q *Query) trust(c *card.Card) recalled.Trust {
	switch {
	case q.Trust != nil:
		return q.Trust(c)
	case c.State == card.Reviewed:
		return recalled.Trust{Rung: recalled.ReviewedRung}
	}
	return recalled.Trust{Rung: recalled.Hypothesis}
}
