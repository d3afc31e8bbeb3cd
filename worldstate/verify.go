//go:build unix

package worldstate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sort"
)

// A Report is what Verify found. OK means every object every ref needs is
// there and has its hash.
type Report struct {
	OK       bool      `json:"ok"`
	Refs     int       `json:"refs"`
	Commits  int       `json:"commits"`
	Objects  int       `json:"objects"` // read and hashed, commits included
	Problems []Problem `json:"problems"`
	// Unfinished: an interrupted restore waits for Recover.
	Unfinished bool `json:"unfinished"`
}

// A Problem is one thing that is gone or rotten, and one snapshot that needs it.
type Problem struct {
	Object   string `json:"object"`
	Path     string `json:"path"`
	Snapshot ID     `json:"snapshot"`
	Error    string `json:"error"`
}

// Verify reads and hashes every object that any ref of the store reaches, of
// all tasks and worlds. What is damaged is in the Report; the error is for
// what kept it from looking at all. After it found damage, a save writes anew
// what has rotted and still stands in the world.
func (w *World) Verify(ctx context.Context) (Report, error) {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return Report{}, err
	}
	defer end()
	r := Report{Problems: w.objects.damagedPacks()}
	refs, err := w.objects.readRefs()
	if err != nil {
		return Report{}, err
	}
	r.Refs = len(refs)
	r.Unfinished = errors.Is(w.checkNoJournal(), ErrUnfinished)
	v := verifier{w: w, ctx: ctx, r: &r, seen: make(map[hash]bool)}
	names := make([]string, 0, len(refs))
	for name := range refs {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if err := v.commits(refs[name], name); err != nil {
			return Report{}, err
		}
	}
	if r.OK = len(r.Problems) == 0; !r.OK {
		// What is known of files rests on the store: the next save reads them
		// all, and writes anew what has rotted here and still stands there.
		w.knows = &knowledge{}
		if err := os.Remove(w.cachePath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return r, fmt.Errorf("verify: drop the stat cache: %w", err)
		}
	}
	return r, nil
}

// damagedPacks lists the packs that cannot be used.
func (s *objectStore) damagedPacks() []Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Problem, 0, len(s.damaged))
	for name, err := range s.damaged {
		out = append(out, Problem{Path: name, Error: err.Error()})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}

type verifier struct {
	w    *World
	ctx  context.Context
	r    *Report
	seen map[hash]bool
	at   ID
}

// problem takes down what is wrong with an object. Too many open files are
// nothing wrong with it, and end it all.
func (v *verifier) problem(h hash, path string, err error) error {
	if exhausted(err) {
		return err
	}
	var m *MissingObjectError
	if errors.As(err, &m) && m.Object == h.String() {
		err = m.Err
	}
	v.r.Problems = append(v.r.Problems, Problem{h.String(), path, v.at, err.Error()})
	return nil
}

// first reports whether the object was not looked at before.
func (v *verifier) first(h hash) bool {
	if v.seen[h] {
		return false
	}
	v.seen[h] = true
	v.r.Objects++
	return true
}

func (v *verifier) commits(h hash, ref string) error {
	for queue := []hash{h}; len(queue) > 0; queue = queue[1:] {
		h := queue[0]
		if !v.first(h) {
			continue
		}
		if err := v.ctx.Err(); err != nil {
			return err
		}
		v.at = ID(h.String())
		c, err := v.w.commit(h)
		if errors.Is(err, errWrongType) && !isOurRef(ref) {
			if queue, err = v.aside(h, ref, queue); err != nil {
				return err
			}
			continue
		}
		v.r.Commits++
		if err != nil {
			if err := v.problem(h, ref, err); err != nil {
				return err
			}
			continue
		}
		queue = append(queue, c.parents...)
		before := len(v.r.Problems)
		if err := v.tree(c.tree, "", 0); err != nil {
			return err
		}
		if len(v.r.Problems) == before { // all there; does it also read as a world?
			if _, err := v.w.objects.loadTree(c.tree, nil); err != nil {
				if err := v.problem(c.tree, "", err); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// aside looks at what a person's ref leads to that is no snapshot, and adds to the
// queue what that leads to.
func (v *verifier) aside(h hash, ref string, queue []hash) ([]hash, error) {
	a, err := v.w.objects.readAside(h, ref)
	switch {
	case err != nil:
	case a.kind == tagObject:
		return append(queue, a.next), nil
	case a.kind == treeObject:
		v.r.Objects-- // it is counted there
		delete(v.seen, h)
		return queue, v.tree(h, "", 0)
	default:
		err = v.w.objects.check(h, a.kind, ref)
	}
	if err != nil {
		err = v.problem(h, ref, err)
	}
	return queue, err
}

func (v *verifier) tree(h hash, path string, depth int) error {
	if !v.first(h) {
		return nil
	}
	if err := v.ctx.Err(); err != nil {
		return err
	}
	data, err := v.w.objects.read(h, treeObject, path)
	var items []treeItem
	if err == nil {
		items, err = decodeTree(data)
	}
	if err == nil && depth > maxTreeDepth {
		err = errors.New("nested too deep")
	}
	if err != nil {
		return v.problem(h, path+"/", err)
	}
	for _, it := range items {
		p := join(path, it.name)
		if it.mode == "40000" {
			if err := v.tree(it.hash, p, depth+1); err != nil {
				return err
			}
			continue
		}
		if v.first(it.hash) {
			if err := v.w.objects.check(it.hash, blobObject, p); err != nil {
				if err := v.problem(it.hash, p, err); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
