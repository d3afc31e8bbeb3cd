package worldstate

import (
	"slices"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/tree"
)

// recent holds values that were used recently, the newest last.
type recent[V any] []recentValue[V]

type recentValue[V any] struct {
	of    gitfmt.Hash
	value V
}

// maxRecent bounds the values of each cache.
const maxRecent = 4

// get returns a value and makes it the most recent.
func (r recent[V]) get(of gitfmt.Hash) (v V, ok bool) {
	i := slices.IndexFunc(r, func(e recentValue[V]) bool { return e.of == of })
	if i < 0 {
		return v, false
	}
	e := r[i]
	copy(r[i:], r[i+1:])
	r[len(r)-1] = e
	return e.value, true
}

// put adds a value that is not in the cache.
func (r *recent[V]) put(of gitfmt.Hash, v V) {
	if len(*r) == maxRecent {
		*r = slices.Delete(*r, 0, 1)
	}
	*r = append(*r, recentValue[V]{of, v})
}

func (w *World) tree(h gitfmt.Hash) (*tree.Listing, error) {
	if l, ok := w.listings.get(h); ok {
		return l, nil
	}
	l, err := tree.Load(w.objects, h, w.track.LastListing())
	if err == nil {
		w.listings.put(h, l)
	}
	return l, err
}

// recentID returns the world id of a cached listing without encoding it.
func (w *World) recentID(l *tree.Listing) (tree gitfmt.Hash, known bool) {
	for _, r := range w.listings {
		if r.value.Root == l.Root {
			return r.of, true
		}
	}
	return gitfmt.Hash{}, false
}

func (w *World) treeOf(l *tree.Listing) gitfmt.Hash {
	if tree, known := w.recentID(l); known {
		return tree
	}
	return tree.ID(l)
}

// policyOf returns a snapshot's frozen ignore rules.
func (w *World) policyOf(c *gitfmt.Commit, l *tree.Listing) (*tree.Policy, error) {
	if p, ok := w.policies.get(c.Id); ok {
		return p, nil
	}
	p, err := tree.LoadPolicy(c, l, func(path string, s tree.State) ([]byte, error) {
		return w.objects.Read(s.Hash, gitfmt.BlobObject, path)
	})
	if err == nil {
		w.policies.put(c.Id, p)
	}
	return p, err
}
