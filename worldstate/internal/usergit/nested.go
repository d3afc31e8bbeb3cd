package usergit

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"anamnesis/worldstate/ignore"
)

// Repositories inside a world have an info/exclude and an index of their own.
// Git obeys these there, and so do scans: what the nearest repository's exclude
// file names is ignored, and what its index lists is held all the same. A scan
// finds them by their .git; from then on the files they say that with are looked
// at before every scan, since no event reports them.

// ReadNested reads a repository inside the world; nil where none is there.
func ReadNested(dir string) *Repository {
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
		return nil
	}
	r := newRepository()
	r.look(filepath.Join(dir, ".git"))
	r.readGit(dir, "")
	return r
}

// readAllNested reads the repositories known to be inside.
func (r *Repository) readAllNested(world string, dirs []string) {
	for _, d := range dirs {
		if n := ReadNested(filepath.Join(world, d)); n != nil {
			r.Nest(d, n)
		}
	}
}

func (r *Repository) Nest(dir string, n *Repository) {
	if r.Nested == nil {
		r.Nested = make(map[string]*Repository)
	}
	r.Nested[dir] = n
}

// NestedDirs lists where repositories are known to be inside, sorted.
func (r *Repository) NestedDirs() []string {
	if r == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.Nested))
}

// Excludes are the patterns of a nested repository's info/exclude.
func (r *Repository) Excludes() []ignore.Pattern {
	var out []ignore.Pattern
	if r != nil {
		for _, rules := range r.Outer {
			out = append(out, rules.Patterns...)
		}
	}
	return out
}

// WithNested returns the repository with what a scan found inside, nil where one
// has gone. The repository itself stays as it was: the scan may come to nothing.
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
