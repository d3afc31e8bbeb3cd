package usergit

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"time"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// Seeding. Where the user has a git repository, a first save need not read
// every file: the repository's index says which blob a file was under which
// stat, and its packs have that blob, compressed. It is copied as it is. The repository
// is only read.
//
// A blob is not always what is in the file: line endings, ident and filters
// change it on the way. So a blob is trusted for a file only where git itself
// would not read the file again, where the blob is as long as the file (every
// change of line endings or of $Id$ changes the length), and where nothing
// mentions filters or encodings, which may not. Anything odd (a split index, other
// hashes, alternates of theirs, conflicts, files assumed unchanged) is read.

// Seed is what a first save may take from the user's repository.
type Seed struct {
	entries map[string]*gitfmt.IndexEntry // by path in the world
	written time.Time                     // of the index
	Objects *objects.Store
}

func (s *Seed) Close() {
	if s != nil {
		s.Objects.Close()
	}
}

// userObjects is where a user's repository keeps its objects, and what it
// takes to find what its index knows.
type userObjects struct {
	common, index, top, up string
}

// Load returns what the repository offers; nil when that is nothing.
func (u *userObjects) Load() *Seed {
	if u == nil {
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

// inside returns a path of the index as one of the world.
func (u *userObjects) inside(path string) (string, bool) {
	if u.up == "" {
		return path, true
	}
	return strings.CutPrefix(path, u.up+"/")
}

// converts reports whether a filter or an encoding may change what is between a file
// and its blob, or whether that is unknown.
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
		if mentions(path, "attributesfile", "objectformat", "[include") { // what is included is not looked for
			return true
		}
	}
	return false
}

// mentions reports whether a file holds one of some words, or cannot be read.
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

// Blob returns the blob that a file holds, without a look at its bytes, if the blob is
// as long as the file.
func (s *Seed) Blob(path string, st fsys.Stamp) (gitfmt.Hash, bool) {
	if s == nil {
		return gitfmt.Hash{}, false
	}
	e := s.entries[path]
	if e == nil || !indexMatches(e, st, s.written) {
		return gitfmt.Hash{}, false
	}
	return e.Hash, true
}

// indexMatches reports whether a file is as it was when git read it. written is
// when the index was: a change in the same tick or later shows in no stamp, and
// git itself would read the file again.
func indexMatches(e *gitfmt.IndexEntry, st fsys.Stamp, written time.Time) bool {
	mtime := time.Unix(int64(e.MtimeSec), int64(e.MtimeNsec))
	return e.Stage == 0 && !e.AssumeValid && !e.SkipTree && !e.IntentToAdd && st.IsRegular() &&
		e.Mode&^0o777 == 0o100000 && (e.MtimeNsec != 0 || e.CtimeNsec != 0) && mtime.Before(written) &&
		uint32(st.Size) == e.Size && uint32(st.Ino) == e.Ino &&
		st.Mtime == mtime.UnixNano() && st.Ctime == time.Unix(int64(e.CtimeSec), int64(e.CtimeNsec)).UnixNano()
}
