package knowledgebase

import (
	"cmp"
	"context"
	"slices"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/knowledge_base/retrieval"
)

// nearer is what a project's own cards gain over global ones: enough to
// settle a tie.
const nearer = 1.05

// Query is one search. The zero value of each field is its default.
type Query struct {
	Text string
	K    int // how many hits at most; 0 is [retrieval.DefaultK]
	// Own are the lessons that the asking task wrote, by [card.Card.Hash]. Its own tainted
	// cards are shown to it; others only after a user has reviewed them.
	Own []string
	// Withheld searches the drafts that this query would find if they were
	// reviewed, and nothing else.
	Withheld bool
	// Trust says how far a card may be believed and whether this search may find it;
	// nil: drafts are hypotheses, and found.
	Trust func(c *card.Card) recalled.Trust
	// MinEvidence is the [retrieval.Evidence.Strength] below which a card is not
	// shown; 0 is [retrieval.DefaultMinEvidence], a negative value shows
	// everything found.
	MinEvidence float64

	// Among names the only cards that may be found; nil: all.
	Among map[string]bool

	without map[string]bool // cards that are not to be found; set by [Layers.Search]
}

// Layers are several folders searched as one, the nearest first.
type Layers []*Store

func (l Layers) found(ctx context.Context, q Query) ([]recalled.Hit, error) {
	found := make([][]recalled.Hit, len(l))
	total := 0
	for i, s := range l {
		var err error
		if found[i], err = s.searchFolder(ctx, q); err != nil {
			return nil, err
		}
		total += len(found[i])
	}
	most := cmp.Or(q.K, retrieval.DefaultK)
	out := make([]recalled.Hit, 0, min(most, total))
	seen := make(map[string]bool)
	for range total {
		i := best(found)
		h := found[i][0]
		found[i] = found[i][1:]
		if len(out) == most || seen[h.Card.ID] || seen[h.Card.Hash()] || l.hides(i, h.Card) {
			continue
		}
		seen[h.Card.ID], seen[h.Card.Hash()] = true, true
		out = append(out, h)
	}
	return l.withOpposing(out, q), nil
}

// withOpposing adds after each hit the cards that contradict it, so that both sides
// are shown. They do not count against the number of hits requested.
func (l Layers) withOpposing(hits []recalled.Hit, q Query) []recalled.Hit {
	shown := make(map[string]bool)
	for _, h := range hits {
		shown[h.Card.ID] = true
	}
	var out []recalled.Hit
	for _, h := range hits {
		h.Contradicts = l.opposing(h.Card.ID)
		out = append(out, h)
		for _, id := range h.Contradicts {
			if shown[id] {
				continue
			}
			for _, s := range l {
				if other, ok := s.opposite(h, id, q); ok {
					other.Contradicts = l.opposing(id)
					shown[id], out = true, append(out, other)
					break
				}
			}
		}
	}
	return out
}

// opposing returns the ids that contradict one, in any layer.
func (l Layers) opposing(id string) (out []string) {
	for _, s := range l {
		for _, other := range s.Opposing(id) {
			if !slices.Contains(out, other) {
				out = append(out, other)
			}
		}
	}
	return out
}

// best returns the layer whose first hit has the most evidence.
func best(found [][]recalled.Hit) int {
	at, most := -1, 0.0
	for i, hits := range found {
		if len(hits) == 0 {
			continue
		}
		weight := hits[0].Evidence.Strength
		if i < len(found)-1 {
			weight *= nearer
		}
		if at < 0 || weight > most {
			at, most = i, weight
		}
	}
	return at
}

// hides reports whether another layer's card has the id of a card of layer i, found or not: the one that was
// reviewed here, else the nearest. A card that is retired in a near folder must not come back from another, and a
// project's draft does not take the place of a reviewed card.
func (l Layers) hides(i int, c *card.Card) bool {
	for k, s := range l {
		state := s.state(c.ID)
		switch {
		case k == i || state == "":
		case (state == card.Reviewed) != (c.State == card.Reviewed):
			return state == card.Reviewed
		case k < i:
			return true
		}
	}
	return false
}

// maxWithheld is how many rounds of cards that may not be believed one search
// removes before it answers with what is left.
const maxWithheld = 8

// Search searches all of the layers. Of cards with one id, or
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

// Visible returns the cards that the asking task may be shown, oldest first. Of cards with one
// id the nearest layer's is returned.
func (l Layers) Visible(q Query) []*card.Card {
	var out []*card.Card
	for i, s := range l {
		for _, c := range s.visible(q) {
			if !l.hides(i, c) {
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(a, b *card.Card) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return out
}
