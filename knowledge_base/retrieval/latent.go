package retrieval

import (
	"context"
	"fmt"
	"sync"
)

// latentDepth is how many candidates the built-in embedder compares with the
// query at least. Its vectors are made when a card is first compared: most
// never are, and a command that searches once makes as many.
const latentDepth = 64

// latent is the leg of the built-in embedder; without a model it adds nothing.
type latent struct {
	model *lsa

	mu      sync.Mutex
	vectors map[int][]float32 // by slot, of the texts compared so far
}

// learn fits the model to docs, sorted by age.
func (l *latent) learn(ctx context.Context, docs []Document, cache *vectorCache) error {
	m, err := builtinModel(ctx, docs, l.model, cache)
	if m != l.model {
		l.model, l.vectors = m, nil
	}
	if err != nil {
		return fmt.Errorf("train embedder: %w", err)
	}
	return nil
}

// query gives the vector to compare with; nil where there is no model.
func (l *latent) query(text string) []float32 {
	if l.model == nil {
		return nil
	}
	return l.model.embed(text)
}

// cosine compares the document in a slot.
func (l *latent) cosine(query []float32, slot int, d *Document) float64 {
	l.mu.Lock()
	v, ok := l.vectors[slot]
	l.mu.Unlock()
	if !ok {
		v = l.model.embed(d.Text())
		l.mu.Lock()
		if l.vectors == nil {
			l.vectors = make(map[int][]float32)
		}
		l.vectors[slot] = v
		l.mu.Unlock()
	}
	return float64(dot(query, v))
}

// forget drops the vector of a slot whose document is another now.
func (l *latent) forget(slot int) { delete(l.vectors, slot) }
