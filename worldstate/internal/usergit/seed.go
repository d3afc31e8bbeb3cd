package usergit

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// Seeding: if the user has a git repository, a first save need not read every file. The
// repository's index says which blob a file had under which stat, and its object store has that
// blob. The snapshot refers to it there; the store lists the repository as an alternate, as git
// does for shared clones. It is copied soon (objects/borrow.go), since a gc of the user's may
// remove it. The repository is only read.
//
// A blob may differ from its file: line endings, ident and filters convert it on checkout. So a
// blob is trusted only if git itself would not read the file again, if the blob is as long as
// the file (every conversion of line endings or of $Id$ changes the length), and if nothing
// mentions filters or encodings, which may keep the length. In any unusual case (a split index,
// other hashes, alternates, conflicts, files assumed unchanged) the file is read.

// Seed holds what a first save may copy from the user's repository.
type Seed struct {
	entries map[string]*gitfmt.IndexEntry // by path in the world
	written time.Time                     // of the index
	Objects *objects.Store
	Used    atomic.Bool // the store lacks some file's bytes
}

// Lent reports whether the scan referred to the repository's objects.
func (s *Seed) Lent() bool { return s != nil && s.Used.Load() }

func (s *Seed) Close() {
	if s != nil {
		s.Objects.Close()
	}
}

// userObjects locates the objects and the index of a user's repository.
type userObjects struct {
	common, index, top, up string
}

// Load returns the repository's seed; nil if it has none that can be used, or if the store
// borrows from another repository.
func (u *userObjects) Load(lender *objects.Store) *Seed {
	if u == nil || lender != nil && lender.Dir != u.common || !filepath.IsAbs(u.common) || strings.ContainsAny(u.common, "\n\"#") {
		return nil
	}
	info, err := os.Stat(u.index)
	if err != nil {
		return nil
	}
	data, err := os.ReadFile(u.index)
	if err != nil {
		return nil
	}
	list, err := gitfmt.DecodeIndex(data)
	if err != nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(u.common, "objects", "info", "alternates")); !errors.Is(err, fs.ErrNotExist) {
		return nil // its objects may be in a third repository
	}
	if u.converts(list) {
		return nil
	}
	theirs := objects.New(u.common)
	if err := theirs.Refresh(); err != nil {
		theirs.Close()
		return nil
	}
	s := &Seed{entries: make(map[string]*gitfmt.IndexEntry, len(list)), written: info.ModTime(), Objects: theirs}
	for i := range list {
		if path, ok := u.inside(list[i].Path); ok {
			s.entries[path] = &list[i]
		}
	}
	return s
}

// inside returns a path of the index relative to the world.
func (u *userObjects) inside(path string) (string, bool) {
	if u.up == "" {
		return path, true
	}
	return strings.CutPrefix(path, u.up+"/")
}

// converts reports whether a filter or an encoding may convert files on checkout, or whether
// that is unknown.
func (u *userObjects) converts(list []gitfmt.IndexEntry) bool {
	home, _ := os.UserHomeDir()
	xdg := os.Getenv("XDG_CONFIG_HOME")
	if xdg == "" {
		xdg = filepath.Join(home, ".config")
	}
	attributes := []string{filepath.Join(u.common, "info", "attributes"), filepath.Join(xdg, "git", "attributes"), "/etc/gitattributes"}
	for i := range list {
		if fsys.Base(list[i].Path) == ".gitattributes" {
			attributes = append(attributes, filepath.Join(u.top, filepath.FromSlash(list[i].Path)))
		}
	}
	for _, path := range attributes {
		if mentions(path, "filter", "working-tree-encoding", "[attr]") {
			return true
		}
	}
	for _, path := range []string{
		filepath.Join(u.common, "config"), filepath.Join(u.common, "config.worktree"), filepath.Join(home, ".gitconfig"),
		filepath.Join(xdg, "git", "config"), "/etc/gitconfig",
	} {
		if mentions(path, "attributesfile", "objectformat", "[include") { // included files are not read
			return true
		}
	}
	return false
}

// mentions reports whether a file contains one of the words, or cannot be read.
func mentions(path string, words ...string) bool {
	data, err := readIgnoreFile(path)
	if err != nil {
		return true
	}
	data = bytes.ToLower(data)
	for _, word := range words {
		if bytes.Contains(data, []byte(word)) {
			return true
		}
	}
	return false
}

// Blob returns the blob of a file by the index, without reading the file.
func (s *Seed) Blob(path string, st fsys.Stamp) (gitfmt.Hash, bool) {
	if s == nil {
		return gitfmt.Hash{}, false
	}
	e := s.entries[path]
	if e == nil || !indexMatches(e, st, s.written) {
		return gitfmt.Hash{}, false
	}
	size, ok := s.Objects.PackedSize(e.Hash)
	return e.Hash, ok && size == st.Size
}

// indexMatches reports whether a file is unchanged since git read it. written is the index's
// time: a change in the same tick or later does not show in the stamp, and git would read the
// file again.
func indexMatches(e *gitfmt.IndexEntry, st fsys.Stamp, written time.Time) bool {
	mtime := time.Unix(int64(e.MtimeSec), int64(e.MtimeNsec))
	return e.Stage == 0 && !e.AssumeValid && !e.SkipTree && !e.IntentToAdd && st.IsRegular() &&
		e.Mode&^0o777 == 0o100000 && (e.MtimeNsec != 0 || e.CtimeNsec != 0) && mtime.Before(written) &&
		uint32(st.Size) == e.Size && uint32(st.Ino) == e.Ino &&
		st.Mtime == mtime.UnixNano() && st.Ctime == time.Unix(int64(e.CtimeSec), int64(e.CtimeNsec)).UnixNano()
}
