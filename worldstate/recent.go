package worldstate

import (
	"slices"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/tree"
)

// A World caches recently used listings and rules.

type recentTree struct {
	tree gitfmt.Hash
	list *tree.Listing
}

type recentPolicy struct {
	of     gitfmt.Hash // a snapshot
	policy *tree.Policy
}

// maxRecent bounds the listings, and the rules, in the cache.
const maxRecent = 4

// tree returns a tree's listing, from the cache if it was used recently.
func (w *World) tree(h gitfmt.Hash) (*tree.Listing, error) {
	if l := w.recall(h); l != nil {
		return l, nil
	}
	l, err := tree.Load(w.objects, h, w.track.Known())
	if err != nil {
		return nil, err
	}
	w.remember(h, l)
	return l, nil
}

// recall returns a cached listing and makes it the most recent; nil if it is not cached.
func (w *World) recall(h gitfmt.Hash) *tree.Listing {
	i := slices.IndexFunc(w.recent, func(r recentTree) bool { return r.tree == h })
	if i < 0 {
		return nil
	}
	r := w.recent[i]
	w.recent = append(slices.Delete(w.recent, i, i+1), r)
	return r.list
}

// recentID returns the world id of a cached listing without encoding it.
func (w *World) recentID(l *tree.Listing) (tree gitfmt.Hash, known bool) {
	for i := range w.recent {
		if w.recent[i].list.Root == l.Root {
			return w.recent[i].tree, true
		}
	}
	return gitfmt.Hash{}, false
}

// treeOf returns a listing's world id.
func (w *World) treeOf(l *tree.Listing) gitfmt.Hash {
	if tree, known := w.recentID(l); known {
		return tree
	}
	return tree.ID(l)
}

func (w *World) remember(h gitfmt.Hash, l *tree.Listing) {
	if w.recall(h) != nil {
		return
	}
	if len(w.recent) == maxRecent {
		w.recent = append(w.recent[:0], w.recent[1:]...)
	}
	w.recent = append(w.recent, recentTree{h, l})
}

// policyOf returns a snapshot's frozen ignore rules, from the cache if they were used recently.
func (w *World) policyOf(c *gitfmt.Commit, l *tree.Listing) (*tree.Policy, error) {
	for _, r := range w.policies {
		if r.of == c.Id {
			return r.policy, nil
		}
	}
	p, err := tree.LoadPolicy(c, l, func(e *tree.Entry) ([]byte, error) { return w.objects.Read(e.Hash, gitfmt.BlobObject, e.Path) })
	if err != nil {
		return nil, err
	}
	if len(w.policies) == maxRecent {
		w.policies = w.policies[1:]
	}
	w.policies = append(w.policies, recentPolicy{c.Id, p})
	return p, nil
}
