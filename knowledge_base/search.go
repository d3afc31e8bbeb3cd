package knowledgebase

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/knowledge_base/retrieval"
)

// idStrength is the evidence for a card asked for by its id: more than words
// can give.
const idStrength = 100

// Search returns the cards that matter for the query, best first, ties by id. A
// query that is a card's id returns that card alone. If no card accounts for enough of
// the query, none is returned. Retired and superseded cards are never found. A card
// that contradicts a hit follows it, beyond K. If the vectors cannot be computed, the
// other legs answer alone and [Store.VectorError] says why.
func (s *Store) Search(ctx context.Context, q Query) ([]recalled.Hit, error) {
	return Layers{s}.Search(ctx, q)
}

// searchFolder returns the hits of this folder alone.
func (s *Store) searchFolder(ctx context.Context, q Query) (hits []recalled.Hit, err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	err = s.withIndex(ctx, func() (err error) {
		hits, err = s.search(ctx, q)
		return err
	})
	return hits, err
}

// maxNear is how many similar cards Near returns.
const maxNear = 3

// Near returns the cards that probably say the same as the card id, in other
// words: what a user should look at beside it before approving it.
// Retired and superseded cards are not among them.
func (s *Store) Near(ctx context.Context, id string) ([]retrieval.Neighbour, error) {
	near, err := s.Nearest(ctx, id, maxNear)
	return slices.DeleteFunc(near, func(n retrieval.Neighbour) bool { return !n.IsDuplicate() }), err
}

// Nearest returns the k cards that resemble the card id most, whether or not
// they say the same, best first. Retired and superseded cards are not among
// them, and have none.
func (s *Store) Nearest(ctx context.Context, id string, k int) (near []retrieval.Neighbour, err error) {
	err = s.withIndex(ctx, func() (err error) {
		near, err = s.index.Near(ctx, id, k)
		return err
	})
	return near, err
}

// withIndex calls do with an index that fits the cards, under a lock.
func (s *Store) withIndex(ctx context.Context, do func() error) error {
	if err := s.refreshWatched(); err != nil {
		return err
	}
	s.mu.RLock()
	if !s.closed && s.filled && !s.index.Stale() {
		defer s.mu.RUnlock()
		return do()
	}
	s.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if err := s.buildIndex(ctx); err != nil {
		return fmt.Errorf("search: %w", err)
	}
	return do()
}

// buildIndex makes the index that of the cards. It records trouble with the vectors and does not
// return it. The write lock is held.
func (s *Store) buildIndex(ctx context.Context) error {
	if err := s.fillIndex(ctx); err != nil {
		return err
	}
	s.setVectorError(s.index.Refresh(ctx))
	return ctx.Err()
}

// rebuildIndex is buildIndex from nothing: it makes all vectors again and waits for them.
func (s *Store) rebuildIndex(ctx context.Context) error {
	if err := s.index.ForgetVectors(); err != nil {
		return fmt.Errorf("clear index: %w", err)
	}
	if err := s.fillIndex(ctx); err != nil {
		return err
	}
	s.setVectorError(s.index.Await(ctx))
	return ctx.Err()
}

// fillIndex puts the cards that may be found into the index, unless it holds them. All of 2,000 take
// a tenth of a second: after a change the next search pays that.
func (s *Store) fillIndex(ctx context.Context) error {
	if s.filled {
		return nil
	}
	docs := make([]retrieval.Document, 0, len(s.cards))
	for _, st := range s.cards {
		if st.State != card.Retired && st.State != card.Superseded {
			sum := sha256.Sum256([]byte(st.Findable()))
			docs = append(docs, retrieval.Document{ID: st.ID, Hash: sum, Text: st.Findable})
		}
	}
	err := s.index.Fill(ctx, docs)
	s.filled = err == nil
	return err
}

// VectorError returns why the last search or rebuild lacked vectors, or nil. With
// [retrieval.ErrBuilding] they are still being computed.
func (s *Store) VectorError() error {
	if err := s.vecErr.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *Store) setVectorError(err error) {
	if err == nil {
		s.vecErr.Store(nil)
		return
	}
	s.vecErr.Store(&err)
}

// search answers from the built index under a lock.
func (s *Store) search(ctx context.Context, q Query) ([]recalled.Hit, error) {
	if st := s.cards[strings.TrimSpace(q.Text)]; st != nil && visibleTo(st, q) {
		return []recalled.Hit{s.hit(st, 1, retrieval.Evidence{Matched: 1, Strength: idStrength, Cosine: 1})}, nil
	}
	if q.Withheld && !s.anyWithheld(q) {
		return nil, nil
	}
	found, vecErr, err := s.index.Search(ctx, retrieval.Query{
		Text: q.Text, K: q.K, MinEvidence: q.MinEvidence,
		Allowed: func(id string) bool {
			st := s.cards[id]
			return st != nil && visibleTo(st, q)
		},
		Prior: func(id string) float64 { return s.prior(s.cards[id].Card, s.opts.Now()) },
	})
	if err != nil {
		return nil, err
	}
	// While vectors are missing, the search did without them in silence: the reason that building recorded stays.
	if vecErr != nil || !s.index.Stale() {
		s.setVectorError(vecErr)
	}
	hits := make([]recalled.Hit, 0, len(found))
	for _, f := range found {
		h := s.hit(s.cards[f.ID], f.Score, f.Evidence)
		h.Also = f.Also
		hits = append(hits, h)
	}
	return hits, nil
}

func (s *Store) hit(st *folder.File, score float64, e retrieval.Evidence) recalled.Hit {
	return recalled.Hit{
		Card: st.Card.Clone(), Score: score, Evidence: e, Expired: st.Expired(s.opts.Now()), Path: st.Path,
	}
}

func (s *Store) anyWithheld(q Query) bool {
	for _, st := range s.cards {
		if visibleTo(st, q) {
			return true
		}
	}
	return false
}

// visibleTo applies the rules of state and taint.
func visibleTo(c *folder.File, q Query) bool {
	if q.without[c.ID] || q.Among != nil && !q.Among[c.ID] {
		return false
	}
	switch c.State {
	case card.Reviewed:
		return !q.Withheld
	case card.Draft:
		shown := !ownTaskOnly(c.Card) || slices.Contains(q.Own, c.Lesson.String())
		return shown != q.Withheld
	}
	return false
}

// opposite returns a card to be shown with a hit that it contradicts.
func (s *Store) opposite(h recalled.Hit, id string, q Query) (recalled.Hit, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := s.cards[id]
	if st == nil || !visibleTo(st, q) {
		return recalled.Hit{}, false
	}
	return s.hit(st, h.Score, h.Evidence), true
}

// state returns the state of the card of that id; "" if there is none.
func (s *Store) state(id string) card.State {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if st := s.cards[id]; st != nil {
		return st.State
	}
	return ""
}

// visible returns the cards that the asking task may be shown.
func (s *Store) visible(q Query) (out []*card.Card) {
	_ = s.refreshWatched() // what cannot be looked at is as it was; a search says why
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, st := range s.cards {
		if visibleTo(st, q) {
			out = append(out, st.Card.Clone())
		}
	}
	return out
}
