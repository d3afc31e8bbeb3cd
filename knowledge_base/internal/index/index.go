// Package index keeps an index that fits the cards of a folder.
package index

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync/atomic"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/retrieval"
)

// Index finds cards once it was built. Its methods, but for VectorError, are called under
// the store's lock.
type Index struct {
	o     retrieval.Options
	built *retrieval.Index      // nil: to be built before the next search
	err   atomic.Pointer[error] // why there are no vectors
}

// New returns an index that is not built.
func New(o retrieval.Options) *Index { return &Index{o: o} }

// Ready reports whether the index fits the cards.
func (x *Index) Ready() bool { return x.built != nil && !x.built.Stale() }

// Build builds the index of the cards. It records trouble with the vectors and does not return
// it. The write lock is held.
func (x *Index) Build(ctx context.Context, cards map[string]*folder.File) error {
	if x.built == nil {
		if err := x.fill(ctx, retrieval.New(&x.o), cards); err != nil {
			return err
		}
	}
	x.setVectorError(x.built.Refresh(ctx))
	return ctx.Err()
}

// Rebuild is Fit from nothing: it makes all vectors again and waits for them.
func (x *Index) Rebuild(ctx context.Context, cards map[string]*folder.File) error {
	x.Drop()
	built := retrieval.New(&x.o)
	if err := built.ForgetVectors(); err != nil {
		return fmt.Errorf("clear index: %w", err)
	}
	if err := x.fill(ctx, built, cards); err != nil {
		return err
	}
	x.setVectorError(x.built.Await(ctx))
	return ctx.Err()
}

func (x *Index) fill(ctx context.Context, built *retrieval.Index, cards map[string]*folder.File) error {
	docs := make([]retrieval.Document, 0, len(cards))
	for _, st := range cards {
		if findable(st.State) {
			docs = append(docs, document(st))
		}
	}
	if err := built.Fill(ctx, docs); err != nil {
		return err
	}
	x.built = built
	return nil
}

// Drop forgets the index; the next search builds a new one. The write lock is held.
func (x *Index) Drop() { x.built = nil }

// Enter adds a card to the index, or removes it if its state excludes it from searches.
func (x *Index) Enter(st *folder.File) {
	switch {
	case x.built == nil:
	case findable(st.State):
		x.built.Put(document(st))
	default:
		x.built.Remove(st.ID)
	}
}

// Remove removes a card from the index.
func (x *Index) Remove(id string) {
	if x.built != nil {
		x.built.Remove(id)
	}
}

// Near returns the k cards that resemble the card id most.
func (x *Index) Near(ctx context.Context, id string, k int) ([]retrieval.Neighbour, error) {
	return x.built.Near(ctx, id, k)
}

// Search searches the built index.
func (x *Index) Search(ctx context.Context, q retrieval.Query) ([]retrieval.Found, error) {
	found, vecErr, err := x.built.Search(ctx, q)
	if err == nil && (vecErr != nil || !x.built.Stale()) {
		x.setVectorError(vecErr)
	}
	return found, err
}

// VectorError returns why the last search or Build had no vectors, or not all of them.
func (x *Index) VectorError() error {
	if err := x.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (x *Index) setVectorError(err error) {
	if err == nil {
		x.err.Store(nil)
		return
	}
	x.err.Store(&err)
}

func findable(state card.State) bool { return state != card.Retired && state != card.Superseded }

// document returns what a card is found by.
func document(st *folder.File) retrieval.Document {
	return retrieval.Document{ID: st.ID, Hash: sha256.Sum256([]byte(st.Findable())), Text: st.Findable}
}
