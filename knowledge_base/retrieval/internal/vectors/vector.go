package vectors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/philippgille/chromem-go"
)

// VectorDepth is how many nearest cards the vector leg contributes at least;
// cards beyond get nothing from it.
const VectorDepth = 256

// tieSlack is how many more are asked for than wanted.
const tieSlack = 64

// Neighbour is a card and the cosine of its vector with the query's.
type Neighbour struct {
	Id     string
	Cosine float64
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
	sum := dot(v, v)
	if sum < 1e-24 || math.IsNaN(sum) || sum > 1e30 {
		return fmt.Errorf("squared length %g: %w", sum, errBadVector)
	}
	return nil
}

// put stores a copy of a vector under id, replacing the one there. It returns
// the copy, which is not to be changed.
func (c *collection) put(ctx context.Context, id string, v []float32) ([]float32, error) {
	if id == "" {
		return nil, fmt.Errorf("store vector without an id: %w", errBadVector)
	}
	if err := checkVector(v, c.dims); err != nil {
		return nil, fmt.Errorf("store vector of %s: %w", id, err)
	}
	v = slices.Clone(v)
	if err := c.c.AddDocument(ctx, chromem.Document{ID: id, Embedding: v}); err != nil {
		return nil, fmt.Errorf("store vector of %s: %w", id, err)
	}
	return v, nil
}

// vector returns the vector stored under id; zeros where there is none.
func (c *collection) vector(ctx context.Context, id string) []float32 {
	d, err := c.c.GetByID(ctx, id)
	if err != nil {
		return make([]float32, c.dims)
	}
	return d.Embedding
}

// nearest returns the k most similar cards with a positive cosine, best first,
// ties by id. Fewer when there are fewer; none for a zero query.
func (c *collection) nearest(ctx context.Context, v []float32, k int) ([]Neighbour, error) {
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
	// place, so ask for more until the last place is clear. Each time is a whole
	// search, and cards that differ in rare words only have one vector: with some
	// more from the start once is nearly always enough.
	for ask := min(n, k+tieSlack); ; ask = min(n, 2*ask) {
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
		var out []Neighbour
		for _, r := range res {
			if r.Similarity > 0 {
				out = append(out, Neighbour{r.ID, float64(r.Similarity)})
			}
		}
		slices.SortFunc(out, func(a, b Neighbour) int {
			return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(a.Id, b.Id))
		})
		return out[:min(k, len(out))], nil
	}
}
