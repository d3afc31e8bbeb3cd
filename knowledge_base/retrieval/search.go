package retrieval

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// The weights of the legs. Fixed, not tuned per set.
const (
	wordsWeight       = 1.0
	gramsWeight       = 0.5
	builtinVecWeight  = 0.3
	externalVecWeight = 1.0
)

// Limits and defaults of one search.
const (
	DefaultK = 5
	MaxK     = 1000
)

// Query is one search. The zero value of each field is its default.
type Query struct {
	Text string
	K    int // how many at most, up to [MaxK]; 0 is [DefaultK]
	// MinEvidence is the [Evidence.Strength] below which a document is not
	// found; 0 is [DefaultMinEvidence], a negative value gives everything.
	MinEvidence float64
	// Allowed tells which documents may be found; nil is all.
	Allowed func(id string) bool
	// Prior is what a document's score is multiplied by; nil is 1.
	Prior func(id string) float64
}

// Evidence is what speaks for a document, before any normalisation.
type Evidence struct {
	// Matched is the share, 0 to 1, of the query's weight that the document's
	// words account for; rare words and identifiers weigh more.
	Matched float64 `json:"matched"`
	// Strength is Matched held against the length of the query: a long query
	// needs a smaller share. This is what abstention looks at.
	Strength float64 `json:"strength"`
	// Cosine of the document's and the query's vector, -1 to 1.
	Cosine float64 `json:"cosine"`
}

// Found is one document of an answer. Score orders the documents of one
// answer and means nothing between answers.
type Found struct {
	ID       string
	Score    float64
	Evidence Evidence
}

// Search gives the documents that matter for the query, best first, ties by
// id; none when no document accounts for enough of the query. When the vector
// leg cannot answer, the result holds without it and vecErr says why.
func (x *Index) Search(ctx context.Context, q Query) (found []Found, vecErr, err error) {
	if q.K < 0 || q.K > MaxK {
		return nil, nil, fmt.Errorf("search: %d hits wanted, 1 to %d are possible", q.K, MaxK)
	}
	if q.K == 0 {
		q.K = DefaultK
	}
	if q.MinEvidence == 0 {
		q.MinEvidence = DefaultMinEvidence
	}
	found, vecErr = x.rank(ctx, q)
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("search: %w", err)
	}
	return x.admit(q.Text, found, q.K, q.MinEvidence), vecErr, nil
}

func sortFound(list []Found) {
	slices.SortFunc(list, func(a, b Found) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
}

// rank scores all allowed documents that any leg found, best first, ties by
// id. Scores lie in (0, sum of weights]. The vector leg is left out when it
// cannot answer; err then says why, and the result still holds.
func (x *Index) rank(ctx context.Context, q Query) (out []Found, err error) {
	n, query := len(x.docs), q.Text
	wordTerms, wordCounts := distinct(func(emit func(string)) { words(query, emit) })
	gramTerms, gramCounts := distinct(func(emit func(uint64)) { grams(query, emit) })
	damp(wordCounts)
	damp(gramCounts)
	wordScores, gramScores := make([]float64, n), make([]float64, n)
	x.words.score(wordTerms, wordCounts, wordScores)
	x.grams.score(gramTerms, gramCounts, gramScores)
	cosines, err := x.vecs.search(ctx, query, max(vectorDepth, 8*q.K))
	vecScores := make([]float64, n)
	for _, h := range cosines {
		if slot, ok := x.slots[h.id]; ok {
			vecScores[slot] = h.cosine
		}
	}
	var bestWord, bestGram, bestVec float64
	var candidates []int
	for slot, d := range x.docs {
		if d.ID == "" || wordScores[slot] <= 0 && gramScores[slot] <= 0 && vecScores[slot] <= 0 || q.Allowed != nil && !q.Allowed(d.ID) {
			continue
		}
		candidates = append(candidates, slot)
		bestWord = max(bestWord, wordScores[slot])
		bestGram = max(bestGram, gramScores[slot])
		bestVec = max(bestVec, vecScores[slot])
	}
	for _, slot := range candidates {
		score := part(wordsWeight, wordScores[slot], bestWord) + part(gramsWeight, gramScores[slot], bestGram) +
			part(x.vecs.weight(), vecScores[slot], bestVec)
		id := x.docs[slot].ID
		if q.Prior != nil {
			score *= q.Prior(id)
		}
		out = append(out, Found{ID: id, Score: score, Evidence: Evidence{Cosine: vecScores[slot]}})
	}
	sortFound(out)
	return out, err
}

// damp turns counts of a term in the query into weights that grow slowly.
func damp(counts []float64) {
	for i, c := range counts {
		counts[i] = 1 + math.Log(c)
	}
}

func part(weight, score, best float64) float64 {
	if best <= 0 || score <= 0 {
		return 0
	}
	return weight * score / best
}
