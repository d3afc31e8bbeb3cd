package worldstate

import (
	"slices"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/tree"
)

// recent holds listings that were used recently, by tree, the newest last.
type recent []struct {
	tree gitfmt.Hash
	list *tree.Listing
}

const maxRecent = 4

// get returns a listing and makes it the most recent; nil if it is absent.
func (r recent) get(h gitfmt.Hash) *tree.Listing {
	for i, e := range r {
		if e.tree == h {
			copy(r[i:], r[i+1:])
			r[len(r)-1] = e
			return e.list
		}
	}
	return nil
}

// put adds a listing that is absent.
func (r *recent) put(h gitfmt.Hash, l *tree.Listing) {
	if len(*r) == maxRecent {
		*r = slices.Delete(*r, 0, 1)
	}
	*r = append(*r, recent{{h, l}}...)
}

func (w *World) tree(h gitfmt.Hash) (*tree.Listing, error) {
	if l := w.listings.get(h); l != nil {
		return l, nil
	}
	l, err := tree.Load(w.objects, h, w.track.Known())
	if err == nil {
		w.listings.put(h, l)
	}
	return l, err
}

// recentID returns the world id of a recent listing without encoding it.
func (w *World) recentID(l *tree.Listing) (id gitfmt.Hash, known bool) {
	for _, r := range w.listings {
		if r.list.Root == l.Root {
			return r.tree, true
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
