package retrieval

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
	"anamnesis/knowledge_base/retrieval/internal/vectors"
)

// The weights of the legs. Fixed, not tuned per set.
const (
	wordsWeight       = 1.0
	gramsWeight       = 0.75
	externalVecWeight = 1.0
	functionWordRank  = 0.25 // of a function word in the word leg
)

// Limits and defaults of one search.
const (
	DefaultK = 5
	MaxK     = 1000
	MaxPrior = 1.15
)

// Query is one search. The zero value of each field is its default.
type Query struct {
	Text string
	K    int // how many at most, up to [MaxK]; 0 is [DefaultK]
	// MinEvidence is the [Evidence.Strength] below which a document is not
	// found; 0 is [DefaultMinEvidence], a negative value returns everything.
	MinEvidence float64
	// Allowed reports whether a document may be found; nil: all may.
	Allowed func(id string) bool
	// Prior is what a document's score is multiplied by, at most [MaxPrior];
	// nil is 1.
	Prior func(id string) float64
}

// Evidence measures how well a document matches, before any normalisation.
type Evidence struct {
	// Matched is the share, 0 to 1, of the query's weight that the document's
	// words account for; rare words weigh more.
	Matched float64 `json:"matched"`
	// Strength is computed from Matched, the same share of character 4-grams, and the
	// length of the query: a long query needs a smaller share. Whether anything is found
	// is decided by it.
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
	// Also are the documents that nearly repeat this one and share its place.
	Also []string
}

// Search returns the documents that matter for the query, best first, ties by
// id; none when no document accounts for enough of the query. When the vector
// leg cannot answer, the result holds without it and vecErr says why.
func (x *Index) Search(ctx context.Context, q Query) (found []Found, vecErr, err error) {
	if q.K < 0 || q.K > MaxK {
		return nil, nil, fmt.Errorf("search: %d hits wanted, 1 to %d are possible", q.K, MaxK)
	}
	q.K = cmp.Or(q.K, DefaultK)
	q.MinEvidence = cmp.Or(q.MinEvidence, DefaultMinEvidence)
	s := newScratch(len(x.docs))
	found, vecErr = x.rank(ctx, q, s)
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("search: %w", err)
	}
	return x.admit(q, found, s), vecErr, nil
}

func sortFound(list []Found) {
	slices.SortFunc(list, func(a, b Found) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
}

// scratch is what one search writes to, by slot.
type scratch struct {
	words, grams, vecs []float64
	asked              scales
}

func newScratch(slots int) *scratch {
	return &scratch{words: make([]float64, slots), grams: make([]float64, slots), vecs: make([]float64, slots)}
}

// rank returns the best of the allowed documents that any leg found, as many as
// are looked at closely for the hits wanted, best first, ties by id. Scores lie in (0, sum of weights]
// before the prior. An external embedder is asked while the other legs work and
// left out when it cannot answer; err then says why, and the result still holds.
func (x *Index) rank(ctx context.Context, q Query, s *scratch) (out []Found, err error) {
	var near []vectors.Neighbour
	done := make(chan struct{})
	go func() { // the other legs are computed while the embedder answers
		defer close(done)
		if x.vecs != nil {
			near, err = x.vecs.Search(ctx, signature(q.Text), max(vectors.VectorDepth, 8*q.K))
		}
	}()
	asked := weigh(q.Text, lexical.Words)
	for i, t := range asked.terms {
		if lexical.IsFunctionWord(t) {
			asked.weights[i] *= functionWordRank
		} else {
			s.asked.content += min(asked.weights[i], 1)
		}
		s.asked.reports = s.asked.reports || lexical.ReportsFailure(t)
	}
	gramTerms := weigh(q.Text, lexical.Grams)
	s.asked.words = x.words.Score(asked.terms, asked.weights, s.words)
	s.asked.grams = x.grams.Score(gramTerms.terms, gramTerms.weights, s.grams)
	<-done
	for _, h := range near {
		if slot, ok := x.slots[h.Id]; ok {
			s.vecs[slot] = h.Cosine
		}
	}
	found := x.fuse(q, s, max(q.K*evidencePool, minPool))
	for i := range found {
		if q.Prior != nil {
			found[i].Score *= min(q.Prior(found[i].ID), MaxPrior)
		}
	}
	sortFound(found)
	return found, err
}

// fuse adds the legs that look at all documents, each divided by its best score,
// and returns the n best.
func (x *Index) fuse(q Query, s *scratch, n int) []Found {
	allowed := func(slot int) bool { return q.Allowed == nil || q.Allowed(x.docs[slot].ID) }
	best := func(scores []float64) float64 {
		top := 0.0
		for slot, score := range scores {
			if score > top && allowed(slot) {
				top = score
			}
		}
		return top
	}
	wordScale, gramScale, vecScale := scale(wordsWeight, best(s.words)), scale(gramsWeight, best(s.grams)), 0.0
	if x.vecs != nil {
		vecScale = scale(externalVecWeight, best(s.vecs))
	}
	var out []Found
	least := 0.0 // below this a score cannot be among the best any more
	for slot := range x.docs {
		score := wordScale*s.words[slot] + gramScale*s.grams[slot] + vecScale*s.vecs[slot]
		if score <= 0 || score < least || !allowed(slot) {
			continue
		}
		out = append(out, Found{ID: x.docs[slot].ID, Score: score, Evidence: Evidence{Cosine: s.vecs[slot]}})
		if len(out) >= 4*n { // so that a query which matches everything does not sort everything
			sortFound(out)
			out = out[:n]
			least = out[n-1].Score
		}
	}
	sortFound(out)
	return out[:min(n, len(out))]
}

// scale is what a leg's scores are multiplied by so that the best becomes
// weight.
func scale(weight, best float64) float64 {
	if best <= 0 {
		return 0
	}
	return weight / best
}

// damp turns counts of a term in the query into weights that grow slowly.
func damp(counts []float64) {
	for i, c := range counts {
		counts[i] = 1 + math.Log(c)
	}
}
