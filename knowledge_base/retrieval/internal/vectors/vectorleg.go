// Package vectors finds texts by the cosine of vectors, which an embedder of the user's makes.
package vectors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// Limits of an embedder that is asked over a network.
const (
	// DefaultVectorWait is how long a search waits for vectors that are being
	// made before it answers without them.
	DefaultVectorWait = 2 * time.Second
	// embedderRest is how long an embedder that failed is left in peace.
	embedderRest = time.Minute
)

// ErrBuilding says that some vectors are not made yet and that searches answer without them
// meanwhile. Each search makes more of them.
var ErrBuilding = errors.New("vectors are being computed; searching by words until then")

// vectorSet is the vectors of documents, by one embedder.
type vectorSet struct {
	embedder Embedder
	coll     *collection
	// mean and spread are of the cosines of cards with one another, most of
	// which have nothing to do with one another; no spread: too few cards.
	mean, spread float64
}

// Leg keeps the vectors of the documents by an external embedder. A set of vectors is built
// beside the present one and takes its place when it is whole. Refresh and Await exclude searches
// and each other.
type Leg struct {
	vectorSet
	external Embedder
	cache    *Cache
	wait     time.Duration
	now      func() time.Time

	mu     sync.Mutex // guards what searches note
	failed time.Time  // when the external embedder failed last
	why    error
}

func NewLeg(external Embedder, cache *Cache, wait time.Duration, now func() time.Time) *Leg {
	return &Leg{external: external, cache: cache, wait: cmp.Or(wait, DefaultVectorWait), now: now}
}

// Refresh makes the vectors those of docs, within a limited time and
// unless the embedder failed a short time ago. On an error the vectors of before stay; those made
// until then are in the cache.
func (l *Leg) Refresh(ctx context.Context, docs []Document) error {
	if err := l.resting(); err != nil {
		return err
	}
	made := l.cache.made
	within, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	err := l.Await(within, docs)
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if l.cache.made > made {
		return ErrBuilding
	}
	err = fmt.Errorf("the embedder made no vector within %s; searching by words for %s", l.wait, embedderRest)
	l.recordFailure(err)
	return err
}

// Await is Refresh that asks an embedder even if it failed just now, and waits without limit.
func (l *Leg) Await(ctx context.Context, docs []Document) error {
	set := vectorSet{embedder: l.external}
	// Only a fault of the embedder counts as a failure, for which it is left alone, and not that the caller gave up.
	if err := set.enter(ctx, l.cache, docs); err != nil {
		if ctx.Err() == nil {
			l.recordFailure(err)
		}
		return err
	}
	set.measure(ctx, docs)
	l.vectorSet = set
	return nil
}

func (l *Leg) recordFailure(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed, l.why = l.now(), err
}

// resting returns the error for which the external embedder is not asked at
// present, nil when it may be.
func (l *Leg) resting() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why != nil && l.now().Sub(l.failed) < embedderRest {
		return l.why
	}
	l.why = nil
	return nil
}

// enter embeds docs, from the cache where it can, and stores their vectors.
func (l *vectorSet) enter(ctx context.Context, cache *Cache, docs []Document) error {
	vecs, err := cache.vectors(ctx, l.embedder, docs)
	if err != nil {
		return err
	}
	for i, d := range docs {
		if l.coll == nil {
			if l.coll, err = newCollection(len(vecs[i])); err != nil {
				return err
			}
		}
		// A text the embedder knows nothing of has a zero vector: the other legs find it.
		stored, err := l.coll.put(ctx, d.ID, vecs[i])
		if err != nil && !(errors.Is(err, errBadVector) && len(vecs[i]) == l.coll.dims) {
			return err
		}
		cache.share(d.Hash, stored)
	}
	return nil
}

// Background is measured on so many pairs of at least so many cards.
const (
	backgroundPairs = 4096
	backgroundCards = 16
)

// measure notes how alike the embedder finds cards that have nothing to do with
// one another: models differ by half the scale.
func (l *vectorSet) measure(ctx context.Context, docs []Document) {
	if l.coll == nil || len(docs) < backgroundCards {
		return
	}
	var sum, squares, n float64
	for i := range backgroundPairs {
		// Each round through the cards pairs them at another distance, from 1 to one less than their number.
		a := i % len(docs)
		b := (a + 1 + i/len(docs)*7%(len(docs)-1)) % len(docs)
		v, w := l.coll.vector(ctx, docs[a].ID), l.coll.vector(ctx, docs[b].ID)
		if a == b || norm(v) == 0 || norm(w) == 0 {
			continue
		}
		cosine := dot(v, w) / norm(v) / norm(w)
		sum, squares, n = sum+cosine, squares+cosine*cosine, n+1
	}
	if n > 1 {
		l.mean = sum / n
		l.spread = math.Sqrt(max(squares/n-l.mean*l.mean, 0))
	}
}

func norm(v []float32) float64 { return math.Sqrt(dot(v, v)) }

func dot(x, y []float32) (sum float64) {
	for i, f := range x {
		sum += float64(f) * float64(y[i])
	}
	return sum
}

// Vouches returns the strength of a cosine of the user's embedder, 1 where it is as
// high as the best of so many unrelated cards would be once in twenty queries
// (of a normal distribution), less in proportion; 0 where nothing can be said.
func (l *Leg) Vouches(cosine float64, docs int) float64 {
	if l.spread == 0 || cosine <= l.mean {
		return 0
	}
	floor := l.mean + l.spread*math.Sqrt(2*math.Log(20*float64(docs)))
	if floor >= 1 {
		return 0 // its cosines tell nothing apart
	}
	return (cosine - l.mean) / (floor - l.mean)
}

// Search returns the nearest documents; none while there are no vectors.
func (l *Leg) Search(ctx context.Context, query string, k int) ([]Neighbour, error) {
	if l.embedder == nil || l.coll == nil {
		return nil, nil
	}
	if err := l.resting(); err != nil {
		return nil, err
	}
	v, err := l.embedder.EmbedQuery(ctx, query)
	if err != nil {
		err = fmt.Errorf("embed query: %w", err)
		if ctx.Err() == nil {
			l.recordFailure(err)
		}
		return nil, err
	}
	return l.coll.nearest(ctx, v, k)
}
