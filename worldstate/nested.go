package worldstate

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
// at before every scan, since no event tells of them.

// readNested reads a repository inside the world; nil where none stands there.
func readNested(dir string) *repository {
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
		return nil
	}
	r := newRepository()
	r.look(filepath.Join(dir, ".git"))
	r.readGit(dir, "")
	return r
}

// readAllNested reads the repositories known to be inside.
func (r *repository) readAllNested(world string, dirs []string) {
	for _, d := range dirs {
		if n := readNested(filepath.Join(world, d)); n != nil {
			r.nest(d, n)
		}
	}
}

func (r *repository) nest(dir string, n *repository) {
	if r.nested == nil {
		r.nested = make(map[string]*repository)
	}
	r.nested[dir] = n
}

// nestedDirs lists where repositories are known to be inside, sorted.
func (r *repository) nestedDirs() []string {
	if r == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.nested))
}

// excludes are the patterns of a nested repository's info/exclude.
func (r *repository) excludes() []ignore.Pattern {
	var out []ignore.Pattern
	if r != nil {
		for _, rules := range r.outer {
			out = append(out, rules.Patterns...)
		}
	}
	return out
}

// withNested gives the repository with what a scan found inside, nil where one
// has gone. The repository itself stays as it was: the scan may come to nothing.
func (r *repository) withNested(found map[string]*repository) *repository {
	if len(found) == 0 {
		return r
	}
	out := *r
	out.nested = maps.Clone(r.nested)
	for d, n := range found {
		if n == nil {
			delete(out.nested, d)
		} else {
			out.nest(d, n)
		}
	}
	return &out
}

// nestedAt gives the repository that has its top at a directory of the world. has
// says whether a .git stands there. changed: it came or went.
func (s *scanner) nestedAt(path string, has bool) (r *repository, changed bool) {
	known := s.repo.nested[path]
	if has == (known != nil) {
		return known, false
	}
	if has {
		if known = readNested(filepath.Join(s.dir, path)); known == nil {
			return nil, false
		}
	} else {
		known = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nested == nil {
		s.nested = make(map[string]*repository)
	}
	s.nested[path] = known
	return known, true
}

// enter takes in the repository whose top the directory is, if it is one.
func (v *visit) enter(has bool) {
	if v.up == nil {
		return // the world's own
	}
	was := v.s.repo.nested[v.path] != nil || v.s.were[v.path] != nil
	r, changed := v.s.nestedAt(v.path, has)
	if v.isTop = was || r != nil; r != nil {
		v.nest, v.nestAt = r, v.path
	}
	if changed {
		v.same = false
	}
}

// ownExcludes are the patterns of the repository whose top the directory is.
func (v *visit) ownExcludes() []ignore.Pattern {
	if v.nest == nil || v.nestAt != v.path {
		return nil
	}
	return v.nest.excludes()
}

// tracks reports whether the person's index, or that of the nearest repository
// inside, lists a path; above, whether it lists something beneath.
func (v *visit) tracks(path string) bool {
	return v.s.repo.tracked[path] || v.nest != nil && v.nest.tracked[path[len(v.nestAt)+1:]]
}

func (v *visit) above(path string) bool {
	return v.s.repo.above[path] || v.nest != nil && v.nest.above[path[len(v.nestAt)+1:]]
}
