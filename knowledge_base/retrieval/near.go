package retrieval

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
)

// nearPool is how many documents are compared closely with one.
const nearPool = 16

// Neighbour is a document that resembles another.
type Neighbour struct {
	ID string `json:"id"`
	// Lexical is the smaller of what share of its own BM25 score each of the
	// two makes the other, 0 to 1: what both say in the same words.
	Lexical float64 `json:"lexical"`
}

const (
	// sameLexical bounds saying the same: of 120 cards about different things no two reach 0.37,
	// and reworded lessons lie above 0.4.
	sameLexical = 0.40
	// relatedLexical: nine of ten cards about different things have no neighbour above it.
	relatedLexical = 0.25
)

// IsDuplicate reports whether the two probably say the same, or the opposite in the same words, so
// that a user should look at them side by side.
func (n Neighbour) IsDuplicate() bool { return n.Lexical >= sameLexical }

// Related reports whether the two probably are about one thing.
func (n Neighbour) Related() bool { return n.Lexical >= relatedLexical }

// Near returns the documents that resemble the document id most, best first, at
// most k; none for an id that is not in the index. Only words count: vectors of cards of one field
// resemble one another in any case. Nothing is normalised by what else the index holds, so the
// measures mean the same everywhere.
func (x *Index) Near(ctx context.Context, id string, k int) (near []Neighbour, err error) {
	slot, ok := x.slots[id]
	if !ok {
		return nil, nil
	}
	text := x.docs[slot].Text()
	words := make([]float64, len(x.docs))
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("near %s: %w", id, err)
	}
	x.scoreText(text, words)
	self := words[slot]
	for i, d := range x.docs {
		if i != slot && words[i] > 0 {
			near = append(near, Neighbour{ID: d.ID, Lexical: min(words[i]/self, 1)})
		}
	}
	// A long text has most words of a short one. So the best are also compared the other way round.
	sortNear(near)
	near = near[:min(nearPool, len(near))]
	for i := range near {
		other := x.slots[near[i].ID]
		clear(words)
		x.scoreText(x.docs[other].Text(), words)
		near[i].Lexical = min(near[i].Lexical, words[slot]/words[other])
	}
	sortNear(near)
	return near[:min(k, len(near))], nil
}

func sortNear(near []Neighbour) {
	slices.SortFunc(near, func(a, b Neighbour) int {
		return cmp.Or(cmp.Compare(b.Lexical, a.Lexical), cmp.Compare(a.ID, b.ID))
	})
}

// scoreText adds each document's BM25 over words for the text.
func (x *Index) scoreText(text string, scores []float64) {
	terms, counts := lexical.Distinct(func(emit func(string)) { lexical.Words(text, emit) })
	damp(counts)
	x.words.Score(terms, counts, scores)
}
