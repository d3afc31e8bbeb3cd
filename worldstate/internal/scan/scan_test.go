package scan_test

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/scan"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/worldtest"
)

// site is a directory with a store and a tracker.
type site struct {
	*testing.T
	dir, cache string
	objects    *objects.Store
	track      *scan.Tracker

	mu   sync.Mutex
	read []string // the files that scans have read
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{
		T: t, dir: worldtest.TempDir(t), objects: objects.New(t.TempDir()),
		cache: filepath.Join(t.TempDir(), "cache"),
	}
	s.must(os.MkdirAll(s.objects.PackDir(), 0o755))
	t.Cleanup(s.objects.Close)
	s.open()
	return s
}

// open makes a new tracker, as another process would.
func (s *site) open() {
	if s.track != nil {
		s.track.Close()
	}
	s.track = scan.New(s.dir, s.cache, s.objects, map[string]bool{"excluded": true, "d/excluded": true}, scan.Options{
		FileLimitBytes: 1000, Secrets: []string{".env*", "key.pem"},
	})
	s.track.Before = func(op, path string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if op == "read" {
			s.read = append(s.read, path)
		}
		return nil
	}
	s.Cleanup(s.track.Close)
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) path(rel string) string { return filepath.Join(s.dir, rel) }

func (s *site) write(rel, text string) {
	s.Helper()
	s.must(os.MkdirAll(filepath.Dir(s.path(rel)), 0o755))
	s.must(os.WriteFile(s.path(rel), []byte(text), 0o644))
}

// wait returns when the clock of the file system is so far beyond every stamp in the directory that
// a later change shows in one.
func (s *site) wait() {
	s.Helper()
	for file := s.cache + "-clock"; ; {
		s.must(os.WriteFile(file, nil, 0o644))
		st, err := fsys.Lstatat(unix.AT_FDCWD, file)
		s.must(err)
		newest := s.newest() | 1 // an odd number of nanoseconds is not taken for a coarse clock
		if !fsys.Racy(fsys.Stamp{Mtime: newest, Ctime: newest}, time.Unix(0, st.Ctime)) {
			return
		}
	}
}

// newest returns the latest change time in the directory.
func (s *site) newest() (newest int64) {
	s.Helper()
	s.must(filepath.WalkDir(s.dir, func(path string, _ fs.DirEntry, err error) error {
		if st, serr := fsys.Lstatat(unix.AT_FDCWD, path); err == nil && serr == nil {
			newest = max(newest, st.Ctime)
		}
		return err
	}))
	return newest
}

// save scans, stores what was found, and remembers it.
func (s *site) save() *scan.Scanned {
	s.Helper()
	root, err := fsys.OpenRoot(s.dir)
	s.must(err)
	defer root.Close()
	pack := objects.NewWriter(s.objects.PackDir(), func(string) {}, &objects.Pool{})
	defer pack.Abort()
	sc, err := s.track.Rescan(s.Context(), root, pack)
	s.must(err)
	s.must(s.objects.Publish(pack, 0))
	s.must(s.track.Learn(sc))
	return sc
}

// reads returns the files that were read since the last call.
func (s *site) reads() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.read)
	text := strings.Join(s.read, " ")
	s.read = nil
	return text
}

// described returns a scan's result, one line for each kind of finding.
func described(sc *scan.Scanned) string {
	var b strings.Builder
	for e := range sc.All() {
		if e.Kind != tree.KindDir {
			fmt.Fprintf(&b, "%s ", e.Path)
		}
	}
	for _, r := range sc.Ignored() {
		fmt.Fprintf(&b, "ignored:%s ", r.Path)
	}
	for _, path := range sc.Secrets {
		fmt.Fprintf(&b, "secret:%s ", path)
	}
	for _, k := range sc.Skips {
		fmt.Fprintf(&b, "skip:%s(%s) ", k.Path, k.Reason)
	}
	for _, u := range sc.Unstored {
		fmt.Fprintf(&b, "unstored:%s(%s) ", u.Path, u.Reason)
	}
	if sc.Partial {
		b.WriteString("partial ")
	}
	return strings.TrimSpace(b.String())
}

// TestScan: what a scan lists, leaves out and notes.
func TestScan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		make func(s *site)
		want string
	}{
		{"files and links", func(s *site) {
			s.write("d/f", "1")
			s.must(os.Symlink("d", s.path("l")))
			s.must(os.Mkdir(s.path("empty"), 0o755))
		}, "d/f l"},
		{"never part of a world", func(s *site) {
			s.write(".git/HEAD", "x")
			s.write("d/.anamnesis/x", "x")
			s.write("excluded/x", "x")
			s.write("d/excluded", "x")
			s.write("e/excluded", "x")
		}, "e/excluded"},
		{"ignored", func(s *site) {
			s.write(".gitignore", "*.o\n/build/\n")
			s.write("a.o", "x")
			s.write("build/f", "x")
			s.write("d/build/f", "x")
		}, ".gitignore d/build/f ignored:a.o ignored:build"},
		{"ignored and in the index", func(s *site) {
			worldtest.Git(s, s.dir, "init", "-q")
			s.write(".gitignore", "out/\n*.o\n")
			s.write("out/kept", "x")
			s.write("out/other", "x")
			s.write("out/.env", "x")
			s.write("a.o", "x")
			worldtest.Git(s, s.dir, "add", "-f", "out/kept")
		}, ".gitignore out/kept ignored:a.o ignored:out/.env ignored:out/other"},
		{"secrets", func(s *site) {
			s.write(".gitignore", ".env*\nkey.pem\nbuild/\n")
			s.write(".env", "x")
			s.write("d/.env.local", "x")
			s.write("build/.env", "x")
			worldtest.Git(s, s.dir, "init", "-q")
			s.write(".env.example", "x")
			worldtest.Git(s, s.dir, "add", "-f", ".env.example")
		}, ".env .env.example .gitignore d/.env.local ignored:build secret:.env secret:d/.env.local"},
		{"a secret's name that is not ignored", func(s *site) { s.write(".env", "x") }, ".env"},
		{"a repository inside", func(s *site) {
			worldtest.Git(s, s.dir, "init", "-q", "n")
			s.write("n/.git/info/exclude", "hidden\n")
			s.write("n/hidden", "x")
			s.write("n/shown", "x")
			s.write("hidden", "x")
		}, "hidden n/shown ignored:n/hidden"},
		{"at the limit", func(s *site) { s.write("f", strings.Repeat("x", 1000)) }, "f"},
		{"too large", func(s *site) { s.write("f", strings.Repeat("x", 1001)) }, "skip:f(larger than the limit of 1000 bytes) partial"},
		{"no bytes", func(s *site) {
			s.must(unix.Mkfifo(s.path("fifo"), 0o600))
			l, err := net.Listen("unix", s.path("s"))
			s.must(err)
			s.Cleanup(func() { l.Close() })
		}, "skip:fifo(fifo) skip:s(socket)"},
		{"attributes", func(s *site) {
			s.write("a", "x")
			s.must(os.Chmod(s.path("a"), 0o755|fs.ModeSetuid))
			s.write("d/b", "x")
			s.must(os.Link(s.path("d/b"), s.path("d/c")))
		},
			"a d/b d/c unstored:a(setuid bit) unstored:d/b(hard link to its other names) unstored:d/c(hard link to its other names)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c.make(s)
			for _, when := range []string{"first", "second"} {
				if got := described(s.save()); got != c.want {
					t.Errorf("%s scan:\ngot  %s\nwant %s", when, got, c.want)
				}
			}
		})
	}
}

// TestScanAgain: a new file in an ignored directory that is kept for a file of the index is ignored
// by a later scan, too.
func TestScanAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	worldtest.Git(t, s.dir, "init", "-q")
	s.write(".gitignore", "out/\n")
	s.write("out/kept", "x")
	worldtest.Git(t, s.dir, "add", "-f", "out/kept")
	s.save()
	s.write("out/new", "x")
	if got := described(s.save()); got != ".gitignore out/kept ignored:out/new" {
		t.Errorf("got %s", got)
	}
}

// TestScanReads: a scan reads the files that may have changed, and no others, in this process and
// in the next.
func TestScanReads(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, f := range []string{"a", "b", "d/c"} {
		s.write(f, "1")
	}
	s.save()
	if got := s.reads(); got != "a b d/c" {
		t.Errorf("the first scan reads %q", got)
	}
	s.wait()
	s.save()
	s.reads()
	for _, c := range []struct {
		name   string
		change func()
		want   string
	}{
		{"nothing", func() {}, ""},
		{"another process", func() { s.must(s.track.StoreCache()); s.open() }, ""},
		{"a new and a changed file", func() { s.write("n", "1"); s.write("a", "22") }, "a n"},
		{"the same size", func() { s.write("b", "2") }, "b"},
		{"the same size and time", func() {
			info, err := os.Stat(s.path("b"))
			s.must(err)
			s.write("b", "3")
			s.must(os.Chtimes(s.path("b"), info.ModTime(), info.ModTime()))
		}, "b"},
		{"another mode", func() { s.must(os.Chmod(s.path("b"), 0o600)) }, "b"},
		{"a renamed directory", func() { s.must(os.Rename(s.path("d"), s.path("e"))) }, "e/c"},
		{"a damaged cache", func() {
			s.must(os.WriteFile(s.cache, []byte(scan.CacheMagic+"x"), 0o600))
			s.open()
		}, "a b e/c n"},
		{"a lost pack", func() {
			for _, name := range s.objects.PackNames() {
				s.must(os.Remove(filepath.Join(s.objects.PackDir(), name)))
			}
			s.must(s.objects.Refresh())
		}, "a b e/c n"},
	} {
		c.change()
		s.wait()
		sc := s.save()
		if got := s.reads(); got != c.want {
			t.Errorf("%s: %q is read, want %q", c.name, got, c.want)
		}
		for e := range sc.All() {
			if data, err := os.ReadFile(s.path(e.Path)); e.Kind == tree.KindFile &&
				(err != nil || gitfmt.HashObject(gitfmt.BlobObject, data) != e.Hash) {
				t.Errorf("%s: %s is not listed as it is", c.name, e.Path)
			}
		}
	}
}

// TestScanRacy: a file that changes in the tick of the scan that read it is read again.
func TestScanRacy(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for i := range 50 {
		text := fmt.Sprintf("%04d", i)
		s.write("f", text)
		if got, want := s.save().At("f").Hash, gitfmt.HashObject(gitfmt.BlobObject, []byte(text)); got != want {
			t.Fatalf("rewrite %d in the tick of the scan was missed", i)
		}
	}
}

// TestScanFaults: a file that cannot be read, or that changes while it is read, is left out and
// listed, and so is a directory that cannot be read.
func TestScanFaults(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, f := range []string{"a", "edited", "locked/in", "moving", "settles"} {
		s.write(f, "1")
	}
	tries := map[string]int{}
	s.track.Before = func(op, path string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		tries[op+" "+path]++
		switch op + " " + path {
		case "readdir locked", "read a":
			return fs.ErrPermission
		case "read edited":
			if tries["read edited"] == 1 {
				return os.WriteFile(s.path("edited"), []byte("other"), 0o644)
			}
		case "reread moving":
			return objects.ErrContentChanged
		case "reread settles":
			if tries["reread settles"] < 3 {
				return objects.ErrContentChanged
			}
		}
		return nil
	}
	const want = "edited settles skip:a(unreadable: permission denied) skip:locked(unreadable: permission denied) skip:moving(changed while being read) partial"
	sc := s.save()
	if got := described(sc); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if sc.At("edited").Hash != gitfmt.HashObject(gitfmt.BlobObject, []byte("other")) {
		t.Error("a file that was edited while it was read is not listed as it is")
	}
	s.track.Before = nil
	if got := described(s.save()); got != "a edited locked/in moving settles" {
		t.Errorf("afterwards: %s", got)
	}
}
