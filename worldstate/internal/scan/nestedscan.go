package scan

import (
	"path/filepath"

	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/usergit"
)

// nestedAt returns the repository whose top is a directory of the world. has reports whether a
// .git is there; changed, whether it came or went.
func (s *scanner) nestedAt(path string, has bool) (r *usergit.Repository, changed bool) {
	known := s.repo.Nested[path]
	if has == (known != nil) {
		return known, false
	}
	if has {
		if known = usergit.ReadNested(filepath.Join(s.dir, path)); known == nil {
			return nil, false
		}
	} else {
		known = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nested == nil {
		s.nested = make(map[string]*usergit.Repository)
	}
	s.nested[path] = known
	return known, true
}

// enter sets the nearest repository, if the directory is the top of one.
func (v *visit) enter(has bool) {
	if v.up == nil {
		return // the world's root
	}
	was := v.s.repo.Nested[v.path] != nil || v.s.were[v.path] != nil
	r, changed := v.s.nestedAt(v.path, has)
	if v.isTop = was || r != nil; r != nil {
		v.nest, v.nestAt = r, v.path
	}
	if changed {
		v.same = false
	}
}

// ownExcludes returns the excludes of the repository whose top is this directory.
func (v *visit) ownExcludes() []ignore.Pattern {
	if v.nest == nil || v.nestAt != v.path {
		return nil
	}
	return v.nest.Excludes()
}

// tracks reports whether the user's index, or that of the nearest nested repository, lists a
// path.
func (v *visit) tracks(path string) bool {
	return v.s.repo.Tracked[path] || v.nest != nil && v.nest.Tracked[path[len(v.nestAt)+1:]]
}

// above reports whether such an index lists a path beneath.
func (v *visit) above(path string) bool {
	return v.s.repo.Above[path] || v.nest != nil && v.nest.Above[path[len(v.nestAt)+1:]]
}
