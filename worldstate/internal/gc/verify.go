package gc

import (
	"context"
	"errors"
	"maps"
	"slices"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/history"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/refs"
	"anamnesis/worldstate/internal/tree"
)

// Health is what Verify found. OK means that every object that a ref needs or a pack holds has
// an intact copy.
type Health struct {
	OK       bool      `json:"ok"`
	Refs     int       `json:"refs"`
	Commits  int       `json:"commits"`
	Objects  int       `json:"objects"` // read and hashed, commits included
	Problems []Problem `json:"problems"`
	// DamagedCopies are objects that are damaged in one pack and intact in another, as after a
	// save that wrote them again. git fsck complains about them. A collection removes those in
	// our packs.
	DamagedCopies []Problem `json:"damaged_copies,omitempty"`
	// Unfinished: an interrupted restore waits for Recover.
	Unfinished bool `json:"unfinished"`
}

// A Problem is one missing or damaged object and one snapshot that needs it. If no snapshot is
// known to need it, Path is the pack that holds it. If a whole pack is damaged, Object is
// empty.
type Problem struct {
	Object   string    `json:"object"`
	Path     string    `json:"path"`
	Snapshot gitfmt.ID `json:"snapshot"`
	Error    string    `json:"error"`
}

// Verify checks a store once. If the store changes meanwhile, it may report removed objects.
func Verify(ctx context.Context, s *objects.Store, named *refs.Store, hook func(string)) (Health, error) {
	byName, err := named.All()
	if err != nil {
		return Health{}, err
	}
	r := Health{Problems: damagedPacks(s), Refs: len(byName)}
	hook("verify-listed")
	v := verifier{s: s, r: &r, seen: make(map[gitfmt.Hash]bool), intact: make(map[gitfmt.Hash]gitfmt.ObjectType)}
	if err := v.packs(ctx); err != nil {
		return Health{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if !refs.IsOurs(name) {
			continue // the user's objects may be in no pack
		}
		if err := v.commits(ctx, byName[name], name); err != nil {
			return Health{}, err
		}
	}
	v.others()
	r.OK = len(r.Problems) == 0
	return r, nil
}

// damagedPacks lists the packs that cannot be used.
func damagedPacks(s *objects.Store) []Problem {
	damaged, out := s.DamagedPacks(), []Problem{}
	for _, name := range slices.Sorted(maps.Keys(damaged)) {
		out = append(out, Problem{Path: name, Error: damaged[name].Error()})
	}
	return out
}

type verifier struct {
	s      *objects.Store
	r      *Health
	seen   map[gitfmt.Hash]bool
	intact map[gitfmt.Hash]gitfmt.ObjectType // objects with an intact copy
	broken []damage
	at     gitfmt.ID
}

// damage is the damage of an object in a pack, or of the pack itself if the object's id is
// zero.
type damage struct {
	pack   string
	object gitfmt.Hash
	err    error
}

// packs reads each pack from end to end, as git fsck does.
func (v *verifier) packs(ctx context.Context) error {
	for _, p := range v.s.AllPacks() {
		whole := true
		for _, it := range p.Entries() {
			if err := ctx.Err(); err != nil {
				return err
			}
			kind, err := v.s.CheckIn(p, it)
			if fsys.Exhausted(err) {
				return err
			}
			if err == nil {
				v.intact[it.Hash] = kind
			} else {
				v.broken, whole = append(v.broken, damage{p.Name, it.Hash, err}), false
			}
		}
		if !whole { // the checksum is wrong for a known reason
			continue
		}
		if err := p.CheckSum(); err != nil {
			v.broken = append(v.broken, damage{p.Name, gitfmt.Hash{}, err})
		}
	}
	return nil
}

// others adds the damage of packs to what the walk of the refs found.
func (v *verifier) others() {
	known := make(map[string]int, len(v.r.Problems))
	for i, p := range v.r.Problems {
		known[p.Object] = i
	}
	for _, d := range v.broken {
		p := Problem{Path: d.pack, Error: d.err.Error()}
		if !d.object.IsZero() {
			p.Object = d.object.String()
		}
		at, ok := known[p.Object]
		switch {
		case p.Object != "" && ok: // already reported with a snapshot that needs it
			if q := &v.r.Problems[at]; q.Error == objects.ErrNoObject.Error() { // an earlier read has marked the copy
				q.Error = p.Error
			}
		case v.intact[d.object] != 0 || v.seen[d.object]:
			v.r.DamagedCopies = append(v.r.DamagedCopies, p)
		default:
			v.r.Problems = append(v.r.Problems, p)
		}
	}
}

// problem records a problem of an object. If too many files were open, it returns the error.
func (v *verifier) problem(h gitfmt.Hash, path string, err error) error {
	if fsys.Exhausted(err) {
		return err
	}
	if m, ok := errors.AsType[*gitfmt.MissingObjectError](err); ok && m.Object == h.String() {
		err = m.Err
	}
	v.r.Problems = append(v.r.Problems, Problem{h.String(), path, v.at, err.Error()})
	return nil
}

// first reports whether the object was not checked before, and marks it.
func (v *verifier) first(h gitfmt.Hash) bool {
	if v.seen[h] {
		return false
	}
	v.seen[h] = true
	v.r.Objects++
	return true
}

func (v *verifier) commits(ctx context.Context, h gitfmt.Hash, ref string) error {
	for queue := []gitfmt.Hash{h}; len(queue) > 0; queue = queue[1:] {
		h := queue[0]
		if !v.first(h) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		v.at = gitfmt.ID(h.String())
		c, err := v.s.Commit(h)
		v.r.Commits++
		if err != nil {
			if err := v.problem(h, ref, err); err != nil {
				return err
			}
			continue
		}
		queue = append(queue, c.Parents...)
		before := len(v.r.Problems)
		if err := v.tree(ctx, c.Tree); err != nil {
			return err
		}
		if len(v.r.Problems) == before && c.World != "" { // complete; check that it also loads as a world
			if _, err := tree.Load(v.s, c.Tree, nil); err != nil {
				if err := v.problem(c.Tree, "", err); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (v *verifier) tree(ctx context.Context, h gitfmt.Hash) error {
	return history.Walk(ctx, v.s, h, history.Visitor{
		Enter: v.first,
		Blob: func(h gitfmt.Hash, path string) error {
			if !v.first(h) || v.intact[h] == gitfmt.BlobObject {
				return nil
			}
			if err := v.s.Check(h, gitfmt.BlobObject, path); err != nil {
				return v.problem(h, path, err)
			}
			return nil
		},
		Failed: func(h gitfmt.Hash, path string, err error) error { return v.problem(h, path+"/", err) },
	})
}

type plainProblem Problem

// MarshalJSON adds path_bytes where the path is not UTF-8.
func (p Problem) MarshalJSON() ([]byte, error) { return gitfmt.MarshalNames((*plainProblem)(&p)) }
