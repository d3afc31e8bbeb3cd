package vectors

import (
	"context"
	"math"
)

// Embedder turns texts into vectors, all of one size. It must be safe for
// concurrent use.
type Embedder interface {
	// Fingerprint names the model and everything else the vectors depend on.
	Fingerprint() string
	// EmbedCards returns one vector a text, in order. A zero vector says that
	// nothing is known of the text.
	EmbedCards(ctx context.Context, texts []string) ([][]float32, error)
	// EmbedQuery returns the vector to compare the cards' vectors with.
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
}

// Below lsaMinCards there is nothing to learn latent dimensions from.
const lsaMinCards = 64

// builtinModel returns the built-in embedder for docs, sorted by age; nil for fewer
// than lsaMinCards. It depends on them only, not on what came before. It learns
// from the oldest, whose number grows in steps of a fifth, so that a new card is
// folded in and only each fifth more cards train again. It learns from maxTraining at most:
// of more, a search would wait for too long.
func builtinModel(ctx context.Context, docs []Document, current *lsa, cache *Cache) (*lsa, error) {
	if len(docs) < lsaMinCards {
		return nil, nil
	}
	docs = docs[:min(trainingSize(len(docs)), maxTraining)]
	fp := lsaFingerprint(docs)
	if current != nil && current.fingerprint == fp {
		return current, nil
	}
	if m := cache.loadModel(fp); m != nil {
		return m, nil
	}
	m, err := trainLSA(ctx, docs)
	if err != nil {
		return nil, err
	}
	cache.saveModel(m)
	return m, nil
}

// trainingSize returns the largest step at most n: 64, 76, 91, …
func trainingSize(n int) int {
	size := lsaMinCards
	for size+size/5 <= n {
		size += size / 5
	}
	return size
}

// maxTraining is how many cards the built-in embedder learns from at most.
const maxTraining = 8192

func norm(v []float32) float64 {
	var sum float64
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	return math.Sqrt(sum)
}
