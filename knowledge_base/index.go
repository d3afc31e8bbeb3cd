package knowledgebase

import (
	"cmp"
	"context"
	"crypto/sha256"
	"math"
	"slices"
	"strings"
	"time"

	"anamnesis/knowledge_base/card"
)

// document is what the index knows of a card.
type document struct {
	id      string
	created time.Time
	text    string            // what is found: topic, bullets, tags
	hash    [sha256.Size]byte // of text
}

func newDocument(id string, created time.Time, text string) document {
	return document{id: id, created: created, text: text, hash: sha256.Sum256([]byte(text))}
}

// cardDocument gives the searchable text of a card.
func cardDocument(c *card.Card) document {
	parts := []string{c.Topic}
	for _, text := range c.Bullets() {
		parts = append(parts, text)
	}
	parts = append(parts, strings.Join(c.Tags, " "), c.Scope.Language, c.Scope.Tool)
	return newDocument(c.ID, c.Created, strings.Join(parts, "\n"))
}

// index holds the three legs. Reading is safe for concurrent use while
// nobody changes it; vectors must be brought up to date by refresh after
// changes.
type index struct {
	slots map[string]int
	docs  []document // by slot; id "" is a free slot
	free  []int
	words *bm25[string]
	grams *bm25[uint64]
	vecs  *vectorLeg
}

func newIndex(e Embedder, cache *vectorCache) *index {
	return &index{
		slots: make(map[string]int),
		words: newBM25[string](wordsB),
		grams: newBM25[uint64](gramsB),
		vecs:  newVectorLeg(e, cache),
	}
}

// put enters a card, or takes it out when its state keeps it from being recalled.
func (x *index) put(id string, c *card.Card) {
	x.remove(id)
	if c.State == card.Retired || c.State == card.Superseded {
		return
	}
	x.add(cardDocument(c))
}

func (x *index) add(d document) {
	slot := len(x.docs)
	if n := len(x.free); n > 0 {
		slot, x.free = x.free[n-1], x.free[:n-1]
		x.docs[slot] = d
	} else {
		x.docs = append(x.docs, d)
	}
	x.slots[d.id] = slot
	x.words.add(slot, func(emit func(string)) { words(d.text, emit) })
	x.grams.add(slot, func(emit func(uint64)) { grams(d.text, emit) })
	x.vecs.stale = true
}

func (x *index) remove(id string) {
	slot, ok := x.slots[id]
	if !ok {
		return
	}
	text := x.docs[slot].text
	x.words.remove(slot, func(emit func(string)) { words(text, emit) })
	x.grams.remove(slot, func(emit func(uint64)) { grams(text, emit) })
	delete(x.slots, id)
	x.docs[slot] = document{}
	x.free = append(x.free, slot)
	x.vecs.stale = true
}

// live lists the documents, oldest first, ties by id: the order in which the
// built-in embedder learns them.
func (x *index) live() []document {
	out := make([]document, 0, len(x.slots))
	for _, d := range x.docs {
		if d.id != "" {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b document) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.id, b.id))
	})
	return out
}

// refresh brings the vectors up to date.
func (x *index) refresh(ctx context.Context) error { return x.vecs.refresh(ctx, x.live()) }

// The weights of the legs. Fixed, not tuned per set.
const (
	wordsWeight       = 1.0
	gramsWeight       = 0.5
	builtinVecWeight  = 0.3
	externalVecWeight = 1.0
)

// ranked is one document of a result.
type ranked struct {
	id       string
	score    float64
	evidence Evidence
}

// rank scores all allowed documents that any leg found, best first, ties by
// id. Scores lie in (0, sum of weights]. The vector leg is left out when it
// cannot answer; err then says why, and the result still holds.
func (x *index) rank(ctx context.Context, query string, k int, allowed func(id string) bool) (out []ranked, err error) {
	n := len(x.docs)
	wordTerms, wordCounts := distinct(func(emit func(string)) { words(query, emit) })
	gramTerms, gramCounts := distinct(func(emit func(uint64)) { grams(query, emit) })
	damp(wordCounts)
	damp(gramCounts)
	wordScores, gramScores := make([]float64, n), make([]float64, n)
	x.words.score(wordTerms, wordCounts, wordScores)
	x.grams.score(gramTerms, gramCounts, gramScores)
	cosines, err := x.vecs.search(ctx, query, max(vectorDepth, 8*k))
	vecScores := make([]float64, n)
	for _, h := range cosines {
		if slot, ok := x.slots[h.id]; ok {
			vecScores[slot] = h.cosine
		}
	}
	var bestWord, bestGram, bestVec float64
	var candidates []int
	for slot, d := range x.docs {
		if d.id == "" || wordScores[slot] <= 0 && gramScores[slot] <= 0 && vecScores[slot] <= 0 || !allowed(d.id) {
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
		out = append(out, ranked{id: x.docs[slot].id, score: score, evidence: Evidence{Cosine: vecScores[slot]}})
	}
	sortRanked(out)
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
