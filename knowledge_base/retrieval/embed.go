package retrieval

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
)

// Embedder turns texts into vectors, all of one size. It must be safe for
// concurrent use. The built-in ones need neither network nor downloads.
type Embedder interface {
	// Fingerprint names the model and everything else the vectors depend on.
	Fingerprint() string
	// EmbedCards gives one vector a text, in order. A zero vector says that
	// nothing is known of the text.
	EmbedCards(ctx context.Context, texts []string) ([][]float32, error)
	// EmbedQuery gives the vector to compare the cards' vectors with.
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
}

// Below lsaMinCards there is nothing to learn latent dimensions from.
const lsaMinCards = 64

// builtinEmbedder gives the embedder for docs, sorted by age. It depends on
// them only, not on what came before: with fewer than lsaMinCards it is
// hashed BM25 over all of them, otherwise latent semantic analysis learned
// from the oldest. Their number grows in steps of a fifth, so a new card is
// folded in and only each fifth more cards train anew. Of very many it learns from
// a sample that their ids alone decide, so that learning takes no longer than
// for maxTraining and most changes of old cards are folded in as well.
func builtinEmbedder(ctx context.Context, docs []document, current Embedder, cache *vectorCache) (Embedder, error) {
	if len(docs) < lsaMinCards {
		return newHashedBM25(docs), nil
	}
	docs = sample(docs[:trainingSize(len(docs))])
	fp := lsaFingerprint(docs)
	if current != nil && current.Fingerprint() == fp {
		return current, nil
	}
	if m := cache.loadModel(fp); m != nil {
		return m, nil
	}
	m, err := trainLSA(ctx, docs)
	if err != nil {
		return nil, fmt.Errorf("train embedder: %w", err)
	}
	cache.saveModel(m)
	return m, nil
}

// trainingSize gives the largest step at most n: 64, 76, 91, …
func trainingSize(n int) int {
	size := lsaMinCards
	for size+size/5 <= n {
		size += size / 5
	}
	return size
}

// maxTraining is how many cards the built-in embedder learns from at most.
const maxTraining = 8192

// sample gives at most maxTraining of the documents, in their order: those
// whose ids have the smallest hashes.
func sample(docs []document) []document {
	if len(docs) <= maxTraining {
		return docs
	}
	keys := make([][sha256.Size]byte, len(docs))
	order := make([]int, len(docs))
	for i, d := range docs {
		keys[i], order[i] = sha256.Sum256([]byte(d.ID)), i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(keys[a][:], keys[b][:]) })
	order = order[:maxTraining]
	slices.Sort(order)
	out := make([]document, len(order))
	for i, at := range order {
		out[i] = docs[at]
	}
	return out
}

// hashedDims is the size of hashed-BM25 vectors, the padding included.
const hashedDims = 2049

// hashedBM25 puts BM25 into vectors: a card's component is the BM25 weight of
// its terms, hashed with a sign; a query's is the count of its terms. One more coordinate
// pads all cards to the same length, so that the cosine ranks as the inner
// product does (the reduction of Bachrach and others, RecSys 2014).
type hashedBM25 struct {
	words       *bm25[string]
	maxNorm     float64
	fingerprint string
}

func newHashedBM25(docs []document) *hashedBM25 {
	e := &hashedBM25{words: newWords()}
	h := sha256.New()
	for i, d := range docs {
		e.words.add(i, func(emit func(string)) { words(d.text(), emit) })
		h.Write(d.hash[:])
	}
	e.fingerprint = "hashed-bm25-1-" + hex.EncodeToString(h.Sum(nil)[:16])
	for _, d := range docs {
		e.maxNorm = max(e.maxNorm, norm(e.raw(d.text())))
	}
	return e
}

func (e *hashedBM25) Fingerprint() string { return e.fingerprint }

// raw is a card's vector before padding.
func (e *hashedBM25) raw(text string) []float32 {
	v := make([]float32, hashedDims)
	terms, counts := distinct(func(emit func(string)) { words(text, emit) })
	length := 0.0
	for _, n := range counts {
		length += n
	}
	var find lookup
	avg := max(1, float64(e.words.total)/float64(max(1, e.words.docs)))
	for i, t := range terms {
		tf := counts[i]
		w := e.words.idf(e.words.list(t, &find).df) * tf * (bm25K1 + 1) / (tf + bm25K1*(1-wordsB+wordsB*length/avg))
		at, sign := hashTerm(t)
		v[at] += float32(sign * w)
	}
	return v
}

func (e *hashedBM25) EmbedCards(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		v := e.raw(t)
		n := norm(v)
		if n > 0 {
			v[hashedDims-1] = float32(math.Sqrt(max(0, e.maxNorm*e.maxNorm-n*n)))
		}
		out[i] = v
	}
	return out, nil
}

func (e *hashedBM25) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	v := make([]float32, hashedDims)
	terms, counts := distinct(func(emit func(string)) { words(text, emit) })
	damp(counts)
	for i, t := range terms {
		at, sign := hashTerm(t)
		v[at] += float32(sign * counts[i])
	}
	return v, nil
}

// hashTerm gives a term's coordinate, never the padding's, and its sign.
func hashTerm(t string) (int, float64) {
	h := fnv.New64a()
	h.Write([]byte(t))
	s := h.Sum64()
	if s>>63 == 1 {
		return int(s % (hashedDims - 1)), -1
	}
	return int(s % (hashedDims - 1)), 1
}

func norm(v []float32) float64 {
	var sum float64
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	return math.Sqrt(sum)
}
