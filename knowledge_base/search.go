package knowledgebase

import (
	"cmp"
	"context"
	"fmt"

	"path/filepath"
	"slices"
	"strings"

	"anamnesis/knowledge_base/card"
)

// Limits of one search.
const (
	DefaultK = 5
	MaxK     = 1000
)

// idStrength is the evidence for a card asked for by its id: more than words
// can give.
const idStrength = 100

// Query is one search. The zero value of each field is its default.
type Query struct {
	Text string
	K    int // how many hits at most; 0 is [DefaultK]
	// Task is the task that asks. Its own tainted cards are shown to it;
	// those of other tasks only after a person has reviewed them.
	Task         string
	ReviewedOnly bool // no drafts
	// MinEvidence is the [Evidence.Strength] below which a card is not shown;
	// 0 is [DefaultMinEvidence], a negative value shows everything found.
	MinEvidence float64
}

// Evidence is what speaks for a hit, before any normalisation.
type Evidence struct {
	// Matched is the share, 0 to 1, of the query's weight that the card's
	// words account for; rare words and identifiers weigh more.
	Matched float64 `json:"matched"`
	// Strength is Matched held against the length of the query: a long query
	// needs a smaller share. This is what abstention looks at.
	Strength float64 `json:"strength"`
	// Cosine of the card's and the query's vector, -1 to 1.
	Cosine float64 `json:"cosine"`
}

// Hit is one card found. Score orders the hits of one search and means
// nothing between searches.
type Hit struct {
	Card     *card.Card `json:"card"`
	Score    float64    `json:"score"`
	Evidence Evidence   `json:"evidence"`
	Expired  bool       `json:"expired"`
	Path     string     `json:"path"`
}

// Search gives the cards that matter for the query, best first, ties by id. A
// query that is a card's id gives that card alone.
// It gives none when nothing in the store accounts for enough of the query.
// Retired and superseded cards are never found. When the vectors cannot be
// computed the other legs answer alone and [Store.VectorError] tells why.
func (s *Store) Search(ctx context.Context, q Query) ([]Hit, error) {
	if q.K < 0 || q.K > MaxK {
		return nil, fmt.Errorf("search: %d hits wanted, 1 to %d are possible", q.K, MaxK)
	}
	if q.K == 0 {
		q.K = DefaultK
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	s.mu.RLock()
	if !s.closed && s.index != nil && !s.index.vecs.stale {
		defer s.mu.RUnlock()
		return s.search(ctx, q)
	}
	s.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if err := s.buildIndex(ctx, false); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return s.search(ctx, q)
}

// buildIndex makes the index fit the cards, from nothing when anew is set.
// Trouble with the vectors is noted, not returned. The write lock is held.
func (s *Store) buildIndex(ctx context.Context, anew bool) error {
	cache := &vectorCache{dir: filepath.Join(s.dir, indexDir), fs: s.opts.fs}
	if anew {
		if err := cache.clear(); err != nil {
			return fmt.Errorf("clear index: %w", err)
		}
		s.index = nil
	}
	if s.index == nil {
		x := newIndex(s.opts.Embedder, cache)
		for _, id := range s.ids() {
			if err := ctx.Err(); err != nil {
				return err
			}
			x.put(id, s.cards[id].card)
		}
		s.index = x
	}
	s.vecErr = s.index.refresh(ctx)
	return ctx.Err()
}

func (s *Store) ids() []string {
	ids := make([]string, 0, len(s.cards))
	for id := range s.cards {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// VectorError tells why the last search or rebuild had no vectors; nil when
// it had them.
func (s *Store) VectorError() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.vecErr
}

// search answers from the built index under a lock.
func (s *Store) search(ctx context.Context, q Query) ([]Hit, error) {
	now := s.opts.Now()
	if st := s.cards[strings.TrimSpace(q.Text)]; st != nil && shownTo(st.card, q) {
		return []Hit{{Card: st.card.Clone(), Score: 1, Evidence: Evidence{Matched: 1, Strength: idStrength, Cosine: 1}, Expired: st.card.Expired(now), Path: st.path}}, nil
	}
	found, _ := s.index.rank(ctx, q.Text, q.K, func(id string) bool {
		st := s.cards[id]
		return st != nil && shownTo(st.card, q)
	})
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	for i := range found {
		found[i].score *= prior(s.cards[found[i].id].card, now.Before)
	}
	sortRanked(found)
	found = s.index.admit(q.Text, found, q.K, minEvidence(q.MinEvidence))
	hits := make([]Hit, 0, len(found))
	for _, r := range found {
		st := s.cards[r.id]
		hits = append(hits, Hit{Card: st.card.Clone(), Score: r.score, Evidence: r.evidence, Expired: st.card.Expired(now), Path: st.path})
	}
	return hits, nil
}

func sortRanked(list []ranked) {
	slices.SortFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
	})
}

// shownTo applies the rules of state and taint.
func shownTo(c *card.Card, q Query) bool {
	switch c.State {
	case card.Reviewed:
		return true
	case card.Draft:
		return !q.ReviewedOnly && (!c.Provenance.Tainted || q.Task != "" && ownTask(c) == q.Task)
	}
	return false
}

func ownTask(c *card.Card) string { return cmp.Or(c.Provenance.Task, c.SourceTask) }
