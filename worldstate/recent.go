package worldstate

import (
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/tree"
)

// maxRecent bounds the values of each cache; a full one is emptied.
const maxRecent = 4

// remember adds a value to a cache.
func remember[V any](cache *map[gitfmt.Hash]V, of gitfmt.Hash, v V) {
	if *cache == nil || len(*cache) == maxRecent {
		*cache = make(map[gitfmt.Hash]V, maxRecent)
	}
	(*cache)[of] = v
}

func (w *World) tree(h gitfmt.Hash) (*tree.Listing, error) {
	if l, ok := w.listings[h]; ok {
		return l, nil
	}
	l, err := tree.Load(w.objects, h, w.track.LastListing())
	if err == nil {
		remember(&w.listings, h, l)
	}
	return l, err
}

// recentID returns the world id of a cached listing without encoding it.
func (w *World) recentID(l *tree.Listing) (tree gitfmt.Hash, known bool) {
	for h, of := range w.listings {
		if of.Root == l.Root {
			return h, true
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
	if p, ok := w.policies[c.Id]; ok {
		return p, nil
	}
	p, err := tree.LoadPolicy(c, l, func(path string, s tree.State) ([]byte, error) {
		return w.objects.Read(s.Hash, gitfmt.BlobObject, path)
	})
	if err == nil {
		remember(&w.policies, c.Id, p)
	}
	return p, err
}
