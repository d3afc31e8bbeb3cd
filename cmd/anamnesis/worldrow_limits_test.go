//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"anamnesis/cmd/internal/exit"
	"anamnesis/worldstate/worldtest"
)

// TestRow14Refused: the root directory and the home directory are no worlds,
// by whatever name.
func TestRow14Refused(t *testing.T) {
	t.Parallel()
	w := newRowWorld(t)
	w.must(os.Symlink(w.dir, w.top+"/link"))
	for dir, word := range map[string]string{
		"/": "the root directory", "/usr/..": "the root directory", w.dir: "the home directory", w.top + "/link": "the home directory", w.top + "/absent": "no such directory",
	} {
		f := programFace{t: t, dir: dir, store: w.store, env: []string{"HOME=" + w.dir}}
		_, err := f.save()
		code := exit.Refused
		if strings.HasSuffix(dir, "absent") {
			code = exit.Usage
		}
		w.refused(err, code, word)
	}
	if exists(w.store) {
		t.Error("a refused world left a store behind")
	}
}

// TestRow14ManyFiles: a directory of very many files is saved, thinned out
// and comes back. 500,000 in the nightly run.
func TestRow14ManyFiles(t *testing.T) {
	t.Parallel()
	heavy(t)
	n := 5_000
	if *nightly {
		n = 500_000
	}
	w := newRowWorld(t)
	w.face = programFace{t: t, dir: w.dir, store: w.store}
	w.must(os.Mkdir(w.path("d"), 0o755))
	for i := range n {
		w.must(os.WriteFile(w.path(fmt.Sprint("d/", i)), fmt.Append(nil, i%977), 0o644))
	}
	first, err := w.save()
	w.must(err)
	if first.Files != n {
		t.Fatalf("%d files of %d", first.Files, n)
	}
	want := w.look().Whats()
	for i := 0; i < n; i += 7 {
		w.must(os.Remove(w.path(fmt.Sprint("d/", i))))
	}
	w.must(os.WriteFile(w.path("d/more"), nil, 0o644))
	_, err = w.save()
	w.must(err)
	res, err := w.restore(first.ID, noOptions)
	w.must(err)
	if !res.Exact || len(res.Written) != (n+6)/7 || len(res.Deleted) != 1 {
		t.Errorf("exact %v, %d written, %d deleted", res.Exact, len(res.Written), len(res.Deleted))
	}
	worldtest.RequireEqual(t, w.look().Whats(), want, "many files")
}

// TestRow14Ownership: what root restores belongs to whom it belonged, and what
// another user may not change is refused whole.
func TestRow14Ownership(t *testing.T) {
	t.Parallel()
	need(t, os.Geteuid() == 0, "root, to change owners")
	w := newRowWorld(t)
	w.face = programFace{t: t, dir: w.dir, store: w.store}
	for _, p := range []string{"a", "d/b", "d/run.sh"} {
		w.write(p, "1")
		w.must(os.Chown(w.path(p), stranger, stranger))
	}
	w.must(os.Chmod(w.path("d/run.sh"), 0o755))
	w.must(os.Chown(w.path("d"), stranger, stranger))
	first := w.saved()
	w.write("a", "2")
	w.write("d/run.sh", "2")
	w.remove("d/b")
	w.must(os.Chown(w.path("a"), 12345, 12345))
	w.back(first)
	for p, uid := range map[string]uint32{"a": 12345, "d/b": stranger, "d/run.sh": stranger} {
		if got := ownerOf(t, w.path(p)); got != uid {
			t.Errorf("%s belongs to %d, want %d", p, got, uid)
		}
	}

	s := strangersWorld(t)
	for _, p := range []string{"a", "d/b", "z"} {
		s.write(p, "1")
		s.must(os.Chown(s.path(p), stranger, stranger))
	}
	s.must(os.Chown(s.path("d"), stranger, stranger))
	before := s.saved()
	for _, p := range []string{"a", "d/b", "z"} {
		s.write(p, "2")
	}
	s.saved()
	s.must(os.Chown(s.path("d"), 0, 0)) // now its entries and modes are root's to change
	s.must(os.Chown(s.path("d/b"), 0, 0))
	look := s.look()
	_, err := s.restore(before.ID, noOptions)
	s.refused(err, exit.Failed, "d/b", "permission denied", "the world was rolled back")
	worldtest.RequireEqual(t, s.look().Whats(), look.Whats(), "a refused restore")
	s.must(os.Chown(s.path("d"), stranger, stranger))
	s.must(os.Chown(s.path("d/b"), stranger, stranger))
	s.back(before)
	s.holds("d/b", "1")
}

func ownerOf(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

// fillTo writes a file until the disk is full, then frees about left bytes.
func fillTo(t *testing.T, dir string, left int64) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var size int64
	for block := make([]byte, 64<<10); ; {
		n, err := f.Write(block)
		size += int64(n)
		if err != nil && len(block) == 1 {
			break
		}
		if err != nil {
			block = make([]byte, 1)
		}
	}
	if err := f.Truncate(max(size-left, 0)); err != nil {
		t.Fatal(err)
	}
}
