package retrieval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/philippgille/chromem-go"
)

// vectorDepth is how many nearest cards the vector leg contributes at least;
// cards beyond get nothing from it.
const vectorDepth = 256

// neighbour is a card and the cosine of its vector with the query's.
type neighbour struct {
	id     string
	cosine float64
}

// collection is chromem-go's exhaustive search behind what it lacks: it
// accepts only finite, non-zero vectors of one size, copies them, answers any
// k, and breaks ties by id. It is not safe for changes during a search.
type collection struct {
	dims int
	c    *chromem.Collection
}

var errBadVector = errors.New("not a usable vector")

func newCollection(dims int) (*collection, error) {
	// The embedding function is never called: vectors are always given.
	embed := func(context.Context, string) ([]float32, error) { return nil, errBadVector }
	c, err := chromem.NewDB().CreateCollection("cards", nil, embed)
	if err != nil {
		return nil, fmt.Errorf("create vector collection: %w", err)
	}
	return &collection{dims: dims, c: c}, nil
}

// checkVector refuses what chromem-go would take and answer NaN or an error
// for later: an empty, zero, infinite or wrong-size vector.
func checkVector(v []float32, dims int) error {
	if len(v) != dims || dims == 0 {
		return fmt.Errorf("%d dimensions instead of %d: %w", len(v), dims, errBadVector)
	}
	var sum float64
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if sum < 1e-24 || math.IsNaN(sum) || sum > 1e30 {
		return fmt.Errorf("squared length %g: %w", sum, errBadVector)
	}
	return nil
}

// put stores a vector under id, replacing the one there.
func (c *collection) put(ctx context.Context, id string, v []float32) error {
	if id == "" {
		return fmt.Errorf("store vector without an id: %w", errBadVector)
	}
	if err := checkVector(v, c.dims); err != nil {
		return fmt.Errorf("store vector of %s: %w", id, err)
	}
	err := c.c.AddDocument(ctx, chromem.Document{ID: id, Embedding: slices.Clone(v)})
	if err != nil {
		return fmt.Errorf("store vector of %s: %w", id, err)
	}
	return nil
}

// remove takes out the vectors of ids. Without ids it does nothing.
func (c *collection) remove(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	if err := c.c.Delete(ctx, nil, nil, ids...); err != nil {
		return fmt.Errorf("remove vectors: %w", err)
	}
	return nil
}

// nearest gives the k most similar cards with a positive cosine, best first,
// ties by id. Fewer when there are fewer; none for a zero query.
func (c *collection) nearest(ctx context.Context, v []float32, k int) ([]neighbour, error) {
	n := c.c.Count()
	if n == 0 || k <= 0 {
		return nil, nil
	}
	if err := checkVector(v, c.dims); err != nil {
		if len(v) == c.dims {
			return nil, nil // nothing known in the query
		}
		return nil, fmt.Errorf("search vectors: %w", err)
	}
	// chromem-go keeps an arbitrary choice of the cards that tie for the last
	// place, so ask for more until the last place is clear.
	for ask := min(n, k+1); ; ask = min(n, 2*ask) {
		res, err := c.c.QueryEmbedding(ctx, v, ask, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("search vectors: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("search vectors: %w", err)
		}
		if ask < n && len(res) > k && res[len(res)-1].Similarity == res[k-1].Similarity {
			continue
		}
		var out []neighbour
		for _, r := range res {
			if r.Similarity > 0 {
				out = append(out, neighbour{r.ID, float64(r.Similarity)})
			}
		}
		slices.SortFunc(out, func(a, b neighbour) int {
			return cmp.Or(cmp.Compare(b.cosine, a.cosine), cmp.Compare(a.id, b.id))
		})
		return out[:min(k, len(out))], nil
	}
}

// vectorLeg keeps the vectors of the documents in step with an embedder.
type vectorLeg struct {
	external Embedder // nil: the built-in embedders
	cache    *vectorCache
	stale    bool

	embedder Embedder
	coll     *collection
	have     map[string][sha256.Size]byte // id → hash of the text embedded
}

func newVectorLeg(external Embedder, cache *vectorCache) *vectorLeg {
	return &vectorLeg{external: external, cache: cache, stale: true}
}

func (l *vectorLeg) weight() float64 {
	if l.external != nil {
		return externalVecWeight
	}
	return builtinVecWeight
}

// refresh makes the collection hold exactly the vectors of docs, which are
// sorted by age. On an error the leg has no vectors and stays stale.
func (l *vectorLeg) refresh(ctx context.Context, docs []document) error {
	if err := l.sync(ctx, docs); err != nil {
		l.embedder, l.coll, l.have = nil, nil, nil
		return err
	}
	l.stale = false
	return nil
}

func (l *vectorLeg) sync(ctx context.Context, docs []document) error {
	if len(docs) == 0 {
		l.embedder, l.coll, l.have = nil, nil, nil
		return nil
	}
	e := l.external
	if e == nil {
		var err error
		if e, err = builtinEmbedder(ctx, docs, l.embedder, l.cache); err != nil {
			return err
		}
	}
	if l.embedder == nil || l.embedder.Fingerprint() != e.Fingerprint() {
		l.coll, l.have = nil, make(map[string][sha256.Size]byte)
	}
	l.embedder = e
	var missing []document
	wanted := make(map[string]bool, len(docs))
	for _, d := range docs {
		wanted[d.ID] = true
		if h, ok := l.have[d.ID]; !ok || h != d.hash {
			missing = append(missing, d)
		}
	}
	var gone []string
	for id := range l.have {
		if !wanted[id] {
			gone = append(gone, id)
			delete(l.have, id)
		}
	}
	if l.coll != nil {
		if err := l.coll.remove(ctx, gone...); err != nil {
			return err
		}
	}
	return l.enter(ctx, missing, len(docs))
}

// enter embeds docs, from the cache where it can, and stores their vectors.
func (l *vectorLeg) enter(ctx context.Context, docs []document, total int) error {
	vecs, err := l.cache.vectors(ctx, l.embedder, docs, total)
	if err != nil {
		return err
	}
	for i, d := range docs {
		if l.coll == nil {
			if l.coll, err = newCollection(len(vecs[i])); err != nil {
				return err
			}
		}
		switch err := l.coll.put(ctx, d.ID, vecs[i]); {
		case err == nil:
		case errors.Is(err, errBadVector) && len(vecs[i]) == l.coll.dims:
			// A text the embedder knows nothing of: the other legs find it.
			if err := l.coll.remove(ctx, d.ID); err != nil {
				return err
			}
		default:
			return err
		}
		l.have[d.ID] = d.hash
	}
	return nil
}

// search gives the nearest documents; none while there are no vectors.
func (l *vectorLeg) search(ctx context.Context, query string, k int) ([]neighbour, error) {
	if l.embedder == nil || l.coll == nil {
		return nil, nil
	}
	v, err := l.embedder.EmbedQuery(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("embed query: %w", err)
	}
	return l.coll.nearest(ctx, v, k)
}
