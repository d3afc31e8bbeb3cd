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

const (
	maxIgnoreFile = 1 << 20 // bytes of one ignore file
)

// survived lists what is not part of a world, and so outlives every jump, if it changed since
// a step had ended. It is detected by time stamps and only ever read.
type survived struct {
	Ignored []string // Ignored roots and files that changed, sorted
	same    []string // Ignored roots whose top did not change
	Partial bool     // the search reached its limit
}

// SurvivedSince examines what no snapshot holds.
func SurvivedSince(dir string, since time.Time) survived {
	var s survived
	_, _, chain := worldstate.GitAround(dir)
	left := notice.MaxSurvivedLooked
	s.walk(dir, "", chain, since, &left)
	// First the top of each, then deeper levels.
	for _, p := range s.same {
		if changedBeneath(filepath.Join(dir, filepath.FromSlash(p)), since, &left) {
			s.Ignored = append(s.Ignored, p)
		}
	}
	s.Partial = left < 0
	slices.Sort(s.Ignored)
	return s
}

// walk looks for ignored entries in a directory that is not ignored.
func (s *survived) walk(root, rel string, chain ignore.Chain, since time.Time, left *int) {
	full := filepath.Join(root, filepath.FromSlash(rel))
	if data, err := durable.ReadTail(filepath.Join(full, ".gitignore"), maxIgnoreFile); err == nil {
		chain = chain.With(ignore.Parse(rel, "", data))
	}
	entries, err := os.ReadDir(full)
	if err != nil {
		return // unreadable paths are reported elsewhere
	}
	for _, e := range entries {
		if *left--; *left < 0 {
			return
		}
		p := path.Join(rel, e.Name())
		switch {
		case e.Name() == ".git" || e.Name() == ".anamnesis":
		case chain.Ignored(p, e.IsDir()):
			if changedSince(filepath.Join(full, e.Name()), e.IsDir(), since, left) {
				s.Ignored = append(s.Ignored, p)
			} else if e.IsDir() {
				s.same = append(s.same, p)
			}
		case e.IsDir():
			s.walk(root, p, chain, since, left)
		}
	}
}

// changedSince reports whether an ignored file, or a directory or a direct entry of it, has a
// later time stamp.
func changedSince(name string, isDir bool, since time.Time, left *int) bool {
	info, err := os.Lstat(name)
	if err != nil {
		return false
	}
	if info.ModTime().After(since) {
		return true
	}
	if !isDir {
		return false
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if *left--; *left < 0 {
			return false
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(since) {
			return true
		}
	}
	return false
}

// changedBeneath reports whether anything beneath a directory has a later time
// stamp.
func changedBeneath(name string, since time.Time, left *int) bool {
	found := false
	_ = filepath.WalkDir(name, func(_ string, e os.DirEntry, err error) error {
		if err != nil {
			return nil // unreadable paths are reported elsewhere
		}
		if *left--; *left < 0 {
			return filepath.SkipAll
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(since) {
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
