// Package history walks what refs reach: the snapshots, newest first, and the objects they
// need.
package history

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/refs"
)

// Log returns the commits that the chosen refs reach, children before parents, otherwise the
// newest first. A commit that cannot be read has only its id and Missing. Its ancestors are
// then found by the step trailers of the commits in packs.
func Log(ctx context.Context, s *objects.Store, byName map[string]gitfmt.Hash, chosen func(ref string) bool) (
	[]*gitfmt.Commit, error,
) {
	all := make(map[gitfmt.Hash]*gitfmt.Commit)
	var queue []gitfmt.Hash
	for ref, h := range byName {
		if !chosen(ref) {
			continue
		}
		if !refs.IsOurs(ref) { // a user's tag, say, or commits of theirs that are in no pack
			if _, err := s.Commit(h); errors.Is(err, gitfmt.ErrCorrupt) {
				continue
			}
		}
		queue = append(queue, h)
	}
	for searched := false; len(queue) > 0; {
		h := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if all[h] != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, err := s.Commit(h)
		if errors.Is(err, gitfmt.ErrCorrupt) {
			c, err = &gitfmt.Commit{Id: h, Missing: err}, nil
			if !searched {
				searched = true
				queue = append(queue, commitsOfSteps(s, chosen)...)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("log: %w", err)
		}
		all[h] = c
		queue = append(queue, c.Parents...)
	}
	return newestFirst(all), nil
}

// rank orders a commit after all its ancestors, whatever their clocks were.
type rank struct {
	time  int64 // the latest of the commit and its ancestors
	depth int
}

// newestFirst returns commits with children before parents, otherwise the newest first; on equal
// times the smaller id.
func newestFirst(all map[gitfmt.Hash]*gitfmt.Commit) []*gitfmt.Commit {
	ranks := make(map[gitfmt.Hash]rank, len(all))
	for stack := slices.Collect(maps.Keys(all)); len(stack) > 0; {
		h := stack[len(stack)-1]
		r, ready := rank{time: all[h].Time.Unix()}, true
		for _, p := range all[h].Parents {
			above, known := ranks[p]
			if !known {
				stack, ready = append(stack, p), false
			}
			r.time, r.depth = max(r.time, above.time), max(r.depth, above.depth+1)
		}
		if ready {
			stack, ranks[h] = stack[:len(stack)-1], r
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *gitfmt.Commit) int {
		x, y := ranks[a.Id], ranks[b.Id]
		return cmp.Or(cmp.Compare(y.time, x.time), cmp.Compare(y.depth, x.depth), bytes.Compare(a.Id[:], b.Id[:]))
	})
}

// commitsOfSteps returns the commits in packs whose step has a chosen ref. It skips packs that cannot
// be read.
func commitsOfSteps(s *objects.Store, chosen func(ref string) bool) []gitfmt.Hash {
	var found []gitfmt.Hash
	for _, p := range s.AllPacks() {
		for _, it := range p.Entries() {
			if kind, err := p.KindAt(it.Off); err != nil || kind != gitfmt.CommitObject {
				continue
			}
			if c, err := s.Commit(it.Hash); err == nil && c.Step != "" && chosen(refs.OfStep(c.Step)) {
				found = append(found, it.Hash)
			}
		}
	}
	return found
}

// Visitor holds the callbacks of a walk of a git tree.
type Visitor struct {
	Enter  func(h gitfmt.Hash) bool                            // reports whether to read the tree
	Tree   func(h gitfmt.Hash, path string)                    // called for each tree that was read; may be nil
	Blob   func(h gitfmt.Hash, path string) error              // called for each file and link
	Failed func(h gitfmt.Hash, path string, cause error) error // for a tree that cannot be read; nil: it ends the walk
}

// Walk visits a tree and everything beneath it, parents first.
func Walk(ctx context.Context, s *objects.Store, h gitfmt.Hash, v Visitor) error {
	return v.walk(ctx, s, h, "", 0)
}

func (v *Visitor) walk(ctx context.Context, s *objects.Store, h gitfmt.Hash, path string, depth int) error {
	if !v.Enter(h) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	items, err := s.Tree(h, path)
	if err == nil && depth > gitfmt.MaxTreeDepth {
		err = fmt.Errorf("tree %s: %w: nested too deep", h, gitfmt.ErrCorrupt)
	}
	if err != nil && v.Failed != nil {
		return v.Failed(h, path, err)
	}
	if err != nil {
		return err
	}
	if v.Tree != nil {
		v.Tree(h, path)
	}
	for _, it := range items {
		p := fsys.Join(path, it.Name)
		switch it.Mode {
		case gitfmt.TreeMode:
			err = v.walk(ctx, s, it.Hash, p, depth+1)
		case gitfmt.GitlinkMode: // a commit of another repository
		default:
			err = v.Blob(it.Hash, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
