package fsys_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
)

// TestFormat: a store's format is a number that this program knows; no file is the first format.
func TestFormat(t *testing.T) {
	for text, tt := range map[string]struct {
		want int
		why  string // "" if it is read
	}{
		"none": {0, ""}, "2\n": {2, ""}, "3": {fsys.Format, ""}, " 3 \n": {3, ""},
		"4\n": {4, "formats up to 3; use a newer version"}, "1\n": {0, "not a number"}, "0\n": {0, "not a number"}, "": {0, "not a number"}, "three": {0, "not a number"},
	} {
		store := t.TempDir()
		if err := os.Mkdir(filepath.Join(store, fsys.StateDir), 0o700); err != nil {
			t.Fatal(err)
		}
		if text != "none" {
			if err := os.WriteFile(filepath.Join(store, fsys.StateDir, fsys.FormatName), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := fsys.ReadFormat(store)
		if got != tt.want || (err == nil) != (tt.why == "") || err != nil && !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%q: %d, %v; want %d, %q", text, got, err, tt.want, tt.why)
		}
		if err := fsys.WriteFormat(store, 2); err != nil {
			t.Error(err)
		}
		if got, err := fsys.ReadFormat(store); got != 2 || err != nil {
			t.Errorf("after 2 was written: %d, %v", got, err)
		}
	}
}

// TestPaths: a path names something in a world if each of its names does, and none is a git directory.
func TestPaths(t *testing.T) {
	for path, want := range map[string]bool{
		"a": true, "a/b": true, "a.git": true, ".gitignore": true, "...": true, "a\n": true,
		"": false, "/a": false, "a/": false, "a//b": false, ".": false, "..": false, "a/../b": false, "a/./b": false, ".git": false, "a/.git/x": false, "a\x00": false,
	} {
		if got := fsys.ValidPath(path); got != want {
			t.Errorf("%q is valid: %v", path, got)
		}
		if got := fsys.ValidName(path); got != (want && !strings.Contains(path, "/")) {
			t.Errorf("%q is a valid name: %v", path, got)
		}
	}
	for _, tt := range []struct {
		path, root string
		want       bool
	}{
		{"a", "", true}, {"a/b", "a", true}, {"a", "a", true}, {"ab", "a", false}, {"a", "a/b", false},
		{"b/a", "a", false},
	} {
		if got := fsys.Beneath(tt.path, tt.root); got != tt.want {
			t.Errorf("%q beneath %q: %v", tt.path, tt.root, got)
		}
	}
	for path, want := range map[string]string{"a": "|a", "a/b": "a|b", "a/b/c": "a/b|c"} {
		if got := fsys.Dir(path) + "|" + fsys.Base(path); got != want ||
			fsys.Join(fsys.Dir(path), fsys.Base(path)) != path {
			t.Errorf("%q is %s", path, got)
		}
	}
	for stop, want := range map[string]string{"": "a a/b", "a": "a"} {
		var got []string
		fsys.Ancestors("a/b/c", func(dir string) bool { got = append(got, dir); return dir != stop })
		if strings.Join(got, " ") != want {
			t.Errorf("ancestors up to %q: %q", stop, got)
		}
	}
}

// TestHoles: a file has what was written to it, holes among it, and its full length where it ends in one.
func TestHoles(t *testing.T) {
	zero := func(n int) string { return strings.Repeat("\x00", n) }
	for _, parts := range [][]string{
		{}, {"a"}, {zero(4096)}, {"a", zero(4096)}, {zero(4096), "a"}, {zero(4095), "a", zero(4095)}, {"a", zero(64 << 10), "b"}, {zero(64<<10 + 1)}, {zero(8192), zero(1)},
	} {
		f, err := os.Create(filepath.Join(t.TempDir(), "f"))
		if err != nil {
			t.Fatal(err)
		}
		h := fsys.HoleWriter{File: f}
		for _, p := range parts {
			if n, err := h.Write([]byte(p)); n != len(p) || err != nil {
				t.Errorf("%d bytes of %d written: %v", n, len(p), err)
			}
		}
		err = errors.Join(f.Truncate(int64(len(strings.Join(parts, "")))), f.Close())
		if got, readErr := os.ReadFile(f.Name()); err != nil || readErr != nil ||
			string(got) != strings.Join(parts, "") {
			t.Errorf("%d parts: %d bytes, %v", len(parts), len(got), err)
		}
	}
}

// TestOpenBeneath: no symbolic link is followed, in no part of the path.
func TestOpenBeneath(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "a/b"), 0o700), os.Symlink("a", filepath.Join(dir, "link")),
		os.Symlink("b", filepath.Join(dir, "a/last")),
		os.WriteFile(filepath.Join(dir, "a/f"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	root, err := fsys.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for rel, want := range map[string]bool{"": true, ".": true, "a": true, "a/b": true, "link": false, "link/b": false, "a/last": false, "a/f": false, "none": false, "..": false} {
		fd, err := fsys.OpenBeneath(root.Fd, rel)
		if (err == nil) != want {
			t.Errorf("%q: %v", rel, err)
		}
		if err == nil {
			_ = unix.Close(fd)
		}
	}
	if _, err := fsys.OpenRoot(filepath.Join(dir, "link")); err == nil {
		t.Error("a world behind a link was opened")
	}
	for from, want := range map[string]error{"a/f": unix.EEXIST, "a/none": unix.ENOENT} {
		if err := os.WriteFile(filepath.Join(dir, "a/there"), []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		fd, err := fsys.OpenBeneath(root.Fd, "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := fsys.RenameNoReplace(fd, fsys.Base(from), "there"); want == unix.EEXIST &&
			!errors.Is(err, want) || err == nil {
			t.Errorf("%s: renamed to a name that exists: %v", from, err)
		}
		unix.Close(fd)
	}
	longest := strings.Repeat("x", unix.PathMax-1)
	if err := os.Symlink(longest, filepath.Join(dir, "long")); err != nil {
		t.Fatal(err)
	}
	if got, err := fsys.Readlinkat(root.Fd, "long"); err != nil || string(got) != longest {
		t.Errorf("a link of %d bytes: %d, %v", len(longest), len(got), err)
	}
	if _, err := fsys.Readlinkat(root.Fd, "a"); err == nil {
		t.Error("a directory was read as a link")
	}
}

// TestRootDir: a directory's path is absolute and without links, and need exist only for RealDir.
func TestRootDir(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "a"), 0o700), os.Symlink("a", filepath.Join(dir, "link")), os.WriteFile(filepath.Join(dir, "f"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ dir, path string }{
		"a": {"a", "a"}, "link": {"a", "a"}, "link/../link": {"a", "a"}, "f": {"", "f"}, "none": {"", "none"}, "link/none/x": {"", "a/none/x"},
	} {
		got, err := fsys.RealDir(filepath.Join(dir, name))
		if (err == nil) != (want.dir != "") || err == nil && got != filepath.Join(dir, want.dir) {
			t.Errorf("%s is the directory %s, %v", name, got, err)
		}
		if got, err := fsys.RealPath(filepath.Join(dir, name)); err != nil || got != filepath.Join(dir, want.path) {
			t.Errorf("%s is the path %s, %v", name, got, err)
		}
	}
	open := func(name string) *fsys.Root {
		r, err := fsys.OpenRoot(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		return r
	}
	top, a := open(""), open("a")
	again, err := a.Dup()
	if err != nil {
		t.Fatal(err)
	}
	if !a.SameDirectory(again) || a.SameDirectory(top) || !a.Empty() || top.Empty() {
		t.Error("directories are compared by something else than device and inode, or an entry is missed")
	}
	again.Close()
	if again.Close(); again.Fd != -1 || again.Empty() {
		t.Error("a closed directory is still open")
	}
	if _, err := fsys.OpenRoot(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestSource: what was read is current until the path, its content or, for a directory's identity, the directory
// changes.
func TestSource(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	none := fsys.StatSource(name)
	if !none.Current() {
		t.Error("what does not exist is not current")
	}
	if err := os.WriteFile(name, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if none.Current() {
		t.Error("a file that was made since is not seen")
	}
	old := fsys.StatSource(name)
	old.Sight.Racy = false
	if !old.Current() || old.Equal(fsys.StatSource(dir)) {
		t.Error("what did not change is not current, or another path is")
	}
	if old.Sight.Racy = true; old.Current() {
		t.Error("a stamp that may hide a change is current")
	}
	at := fsys.SourceAt(dir)
	if err := os.WriteFile(filepath.Join(dir, "g"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !at.Equal(fsys.SourceAt(dir)) {
		t.Error("a new file in a directory is another directory")
	}
	s := fsys.Stamp{Size: 1, Mtime: 2, Ctime: 3, Ino: 4, Dev: 5, Mode: 6, Nlink: 7, Uid: 8, Gid: 9}
	for i, change := range []func(*fsys.Stamp){
		func(s *fsys.Stamp) { s.Size++ }, func(s *fsys.Stamp) { s.Mtime++ }, func(s *fsys.Stamp) { s.Ctime++ },
		func(s *fsys.Stamp) { s.Ino++ }, func(s *fsys.Stamp) { s.Dev++ }, func(s *fsys.Stamp) { s.Mode++ },
		func(s *fsys.Stamp) { s.Nlink++ }, func(s *fsys.Stamp) { s.Uid++ }, func(s *fsys.Stamp) { s.Gid++ },
	} {
		o := s
		if change(&o); s.SameContent(o) != (i >= 6) || (&fsys.Sight{Stamp: s}).Sure(o) != (i >= 6) {
			t.Errorf("change %d: the same content: %v", i, s.SameContent(o))
		}
	}
	if (&fsys.Sight{Stamp: s, Racy: true}).Sure(s) {
		t.Error("a racy stamp is sure")
	}
}
