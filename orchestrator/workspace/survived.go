package workspace

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/worldstate"
	"anamnesis/worldstate/ignore"
)

const maxIgnoreFile = 1 << 20 // bytes of one ignore file

// maxBeneath is how many entries of one ignored directory are looked at, so that a large one leaves some for others.
const maxBeneath = notice.MaxSurvivedLooked / 2

// survived lists what is not part of a world, and so outlives every jump, if it changed since
// a step had ended. It is detected by time stamps and only ever read.
type survived struct {
	Ignored []string // Ignored roots and files that changed, sorted
	Partial bool     // the search reached its limit

	root  string
	since time.Time
	left  int // entries to look at
}

// SurvivedSince examines what no snapshot holds.
func SurvivedSince(dir string, since time.Time) survived {
	s := survived{root: dir, since: since, left: notice.MaxSurvivedLooked}
	_, _, chain := worldstate.GitAround(dir)
	s.walk("", chain)
	slices.Sort(s.Ignored)
	return s
}

// walk looks for ignored entries in a directory that is not ignored.
func (s *survived) walk(rel string, chain ignore.Chain) {
	full := filepath.Join(s.root, filepath.FromSlash(rel))
	if data, err := durable.ReadTail(filepath.Join(full, ".gitignore"), maxIgnoreFile); err == nil {
		chain = chain.With(ignore.Parse(rel, "", data))
	}
	entries, err := os.ReadDir(full)
	if err != nil {
		return // unreadable paths are reported elsewhere
	}
	for _, e := range entries {
		if s.left--; s.left < 0 {
			s.Partial = true
			return
		}
		p := path.Join(rel, e.Name())
		switch {
		case e.Name() == ".git" || e.Name() == ".anamnesis":
		case chain.Ignored(p, e.IsDir()):
			if s.changed(filepath.Join(full, e.Name())) {
				s.Ignored = append(s.Ignored, p)
			}
		case e.IsDir():
			s.walk(p, chain)
		}
	}
}

// changed reports whether an ignored path, or anything beneath it, has a later time stamp.
func (s *survived) changed(name string) (found bool) {
	least := s.left - maxBeneath
	_ = filepath.WalkDir(name, func(_ string, e os.DirEntry, err error) error {
		if err != nil {
			return nil // unreadable paths are reported elsewhere
		}
		if s.left--; s.left < max(least, 0) {
			s.Partial = true
			return filepath.SkipAll
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(s.since) {
			found = true
			return filepath.SkipAll
		}
		return nil
	})
	return found
}

// IgnoredGone returns the ignored paths that steps removed, as their last operations say, and
// that do not exist.
func IgnoredGone(dir string, ops []op.Op) (gone []string) {
	for _, o := range ops {
		if b, ok := o.Body.(*op.WorldSaved); ok {
			for _, path := range b.IgnoredGone {
				if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(path))); err != nil {
					gone = append(gone, path)
				}
			}
		}
	}
	slices.Sort(gone)
	return slices.Compact(gone)
}
