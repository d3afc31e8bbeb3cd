package vectors

import (
	"context"
	"fmt"
	"sync"
)

// LatentDepth is how many candidates the built-in embedder compares with the
// query at least. Its vectors are made when a card is first compared: most
// never are, and a command that searches once makes as many.
const LatentDepth = 64

// Latent is the leg of the built-in embedder; without a model it adds nothing.
type Latent struct {
	model *model

	mu      sync.Mutex
	vectors map[int][]float32 // by slot, of the texts compared so far
}

// Learn fits the model to docs, sorted by age.
func (l *Latent) Learn(ctx context.Context, docs []Document) error {
	m, err := train(ctx, docs)
	l.model, l.vectors = m, nil
	if err != nil {
		return fmt.Errorf("train embedder: %w", err)
	}
	return nil
}

// Query returns the vector to compare with; nil where there is no model.
func (l *Latent) Query(text string) []float32 {
	if l.model == nil {
		return nil
	}
	return l.model.embed(text)
}

// Cosine compares the document in a slot.
func (l *Latent) Cosine(query []float32, slot int, d *Document) float64 {
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
	return dot(query, v)
}

// Forget drops the vector of a slot whose document is another now.
func (l *Latent) Forget(slot int) { delete(l.vectors, slot) }
