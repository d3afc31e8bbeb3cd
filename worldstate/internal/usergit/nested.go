package usergit

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"anamnesis/worldstate/ignore"
)

// Repositories inside a world have their own info/exclude and index. As in git, a scan ignores
// what the nearest repository's exclude file names, and keeps what its index lists. A scan
// finds them by their .git. From then on their files are checked before every scan, since no
// event reports a change of them.

// ReadNested reads the repository at a directory inside the world, nil if there is none.
func ReadNested(dir string) *Repository {
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
		return nil
	}
	r := newRepository()
	r.addSource(filepath.Join(dir, ".git"))
	r.readGit(dir, "")
	return r
}

func (r *Repository) Nest(dir string, n *Repository) {
	if r.Nested == nil {
		r.Nested = make(map[string]*Repository)
	}
	r.Nested[dir] = n
}

// NestedDirs returns the directories of the repositories inside, sorted.
func (r *Repository) NestedDirs() []string {
	if r == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.Nested))
}

// Excludes returns the patterns of a nested repository's info/exclude.
func (r *Repository) Excludes() []ignore.Pattern {
	var out []ignore.Pattern
	if r != nil {
		for _, rules := range r.Outer {
			out = append(out, rules.Patterns...)
		}
	}
	return out
}

// WithNested returns a copy with the repositories that a scan found inside; a nil value removes
// one. The receiver is not changed, since the scan may still fail.
func (r *Repository) WithNested(found map[string]*Repository) *Repository {
	if len(found) == 0 {
		return r
	}
	out := *r
	out.Nested = maps.Clone(r.Nested)
	for d, n := range found {
		if n == nil {
			delete(out.Nested, d)
		} else {
			out.Nest(d, n)
		}
	}
	return &out
}
