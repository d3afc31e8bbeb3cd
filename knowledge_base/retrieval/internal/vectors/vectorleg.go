// Package vectors finds texts by the cosine of vectors, made by an embedder of the user's
// or by the built-in one, which learns from the texts themselves.
package vectors

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
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

// ErrBuilding says that the vectors are still being made and that searches
// answer without them meanwhile.
var ErrBuilding = errors.New("vectors are being computed; searching by words until then")

// troubleKey is where a build keeps what its embedder reports.
type troubleKey struct{}

// Trouble reports a fault that an embedder is about to retry after. Those that wait for
// the vectors get it in place of ErrBuilding.
func Trouble(ctx context.Context, err error) {
	if at, ok := ctx.Value(troubleKey{}).(*atomic.Pointer[error]); ok {
		at.Store(&err)
	}
}

// vectorSet is the vectors of documents, by one embedder.
type vectorSet struct {
	embedder Embedder
	coll     *collection
	have     map[string]textMark // by id: the text embedded
	// mean and spread are of the cosines of cards with one another, most of
	// which have nothing to do with one another; no spread: too few cards.
	mean, spread float64
}

// textMark tells a text from another one in its document: of its hash the
// first bytes.
type textMark [8]byte

func (d *Document) mark() textMark { return textMark(d.Hash[:8]) }

// Leg keeps the vectors of the documents in step with an external
// embedder. A set of vectors is built beside the present one and takes its place
// when it is whole. refresh and close exclude searches and each other.
type Leg struct {
	vectorSet
	external Embedder
	cache    *Cache
	wait     time.Duration
	now      func() time.Time
	Stale    bool
	changes  int // of the documents, counted

	build *build // the one at work, or nil

	mu     sync.Mutex // guards what searches note
	failed time.Time  // when the external embedder failed last
	why    error
}

// build is the making of a set, by a goroutine that ends with done.
type build struct {
	changes int
	cancel  context.CancelFunc
	done    chan struct{}
	set     vectorSet // after done
	err     error     // after done
	trouble atomic.Pointer[error]
}

func NewLeg(external Embedder, cache *Cache, wait time.Duration, now func() time.Time) *Leg {
	l := &Leg{external: external, cache: cache, wait: wait, now: now, Stale: true}
	if l.wait == 0 {
		l.wait = DefaultVectorWait
	}
	if l.now == nil {
		l.now = time.Now
	}
	return l
}

// Changed records that the documents changed.
func (l *Leg) Changed() {
	l.Stale = true
	l.changes++
}

// Refresh makes the vectors those of the documents, which live returns sorted by age. It takes
// the set that is being built if that is done. If none is being built, it begins one and waits
// a limited time, unless the embedder failed a short time ago. On an error the leg stays stale,
// with the vectors of before.
func (l *Leg) Refresh(ctx context.Context, live func() []Document) error {
	if l.build != nil {
		return l.adopt(ctx, 0)
	}
	if err := l.resting(); err != nil {
		return err
	}
	l.begin(ctx, live())
	return l.adopt(ctx, l.wait)
}

// Await is Refresh that asks an embedder even if it failed just now, and waits without limit.
func (l *Leg) Await(ctx context.Context, live func() []Document) error {
	for {
		if l.build == nil {
			l.begin(ctx, live())
		}
		if err := l.adopt(ctx, math.MaxInt64); !errors.Is(err, ErrBuilding) {
			return err
		}
	}
}

// adopt waits for the set that is being built, for limit at most, and makes it the present one.
func (l *Leg) adopt(ctx context.Context, limit time.Duration) error {
	b := l.build
	if err := b.await(ctx, limit); err != nil {
		if why := b.trouble.Load(); why != nil && errors.Is(err, ErrBuilding) {
			return fmt.Errorf("%w; it is being tried again", *why)
		}
		return err
	}
	l.build = nil
	if b.err != nil {
		l.recordFailure(b.err)
		return b.err
	}
	l.vectorSet, l.Stale = b.set, b.changes != l.changes
	if l.Stale {
		return ErrBuilding // changed meanwhile: the next refresh begins again
	}
	return nil
}

// await returns nil once the build has ended, ErrBuilding when that takes longer
// than limit.
func (b *build) await(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	select {
	case <-b.done:
		return nil
	default:
		return ErrBuilding
	}
}

// begin starts building a set. The work outlives ctx, which is one search's,
// and ends with close.
func (l *Leg) begin(ctx context.Context, docs []Document) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b := &build{changes: l.changes, cancel: cancel, done: make(chan struct{})}
	b.set = vectorSet{embedder: l.external, have: make(map[string]textMark)}
	l.build = b
	go func() {
		defer close(b.done)
		defer cancel()
		b.err = b.set.enter(context.WithValue(ctx, troubleKey{}, &b.trouble), l.cache, docs)
		b.set.measure(ctx, docs)
	}()
}

// Close ends a build that is at work and waits for it.
func (l *Leg) Close() {
	if l.build != nil {
		l.build.cancel()
		<-l.build.done
		l.build = nil
	}
}

// recordFailure records that the external embedder failed.
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
		switch stored, err := l.coll.put(ctx, d.ID, vecs[i]); {
		case err == nil:
			cache.share(d.Hash, stored)
		case errors.Is(err, errBadVector) && len(vecs[i]) == l.coll.dims:
			// A text the embedder knows nothing of: the other legs find it.
			if err := l.coll.remove(ctx, d.ID); err != nil {
				return err
			}
		default:
			return err
		}
		l.have[d.ID] = d.mark()
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
		a := i % len(docs)
		b := (a + 1 + i/len(docs)*7%(len(docs)-1)) % len(docs)
		v, w := l.coll.vector(ctx, docs[a].ID), l.coll.vector(ctx, docs[b].ID)
		if a == b || norm(v) == 0 || norm(w) == 0 {
			continue
		}
		dot := 0.0
		for k := range v {
			dot += float64(v[k]) * float64(w[k])
		}
		dot /= norm(v) * norm(w)
		sum, squares, n = sum+dot, squares+dot*dot, n+1
	}
	if n > 1 {
		l.mean = sum / n
		l.spread = math.Sqrt(max(squares/n-l.mean*l.mean, 0))
	}
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
