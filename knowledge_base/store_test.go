package knowledgebase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/durable"
)

func TestPutLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home", "knowledge_base")
	s := openStore(t, dir)
	c := newCard("k1", "Go: `go test` caches / ../ results — 缓存!", "x")
	path, created, err := s.Put(t.Context(), c)
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	if want := filepath.Join(dir, "2026-01", "go-go-test-caches-results-缓存-k1.md"); path != want {
		t.Errorf("path %s, want %s", path, want)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		if d.Name() == ".git" {
			return fs.SkipDir
		}
		want := durable.FileMode
		if d.IsDir() {
			want = fs.ModeDir | durable.DirMode
		}
		if fi.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, fi.Mode(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, ".index", ".gitignore"))
	if err != nil || string(b) != "*\n" {
		t.Errorf(".gitignore %q, %v", b, err)
	}
	long := newCard(strings.Repeat("i", 64), strings.Repeat("𠀀長い", 90), "x")
	if p := mustPut(t, s, long); len(filepath.Base(p)) > 255 {
		t.Errorf("file name of %d bytes", len(filepath.Base(p)))
	}
	if p := mustPut(t, s, newCard("k3", "!!!", "x")); filepath.Base(p) != "card-k3.md" {
		t.Errorf("path %s", p)
	}
}

func TestPutAgain(t *testing.T) {
	s := openStore(t, t.TempDir())
	path := mustPut(t, s, newCard("k1", "topic", "first"))
	stat := func() fs.FileInfo {
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return fi
	}
	before := stat()
	later := newCard("k1", "topic", "first")
	later.Created = day.AddDate(0, 2, 0)
	if p, created, err := s.Put(t.Context(), later); err != nil || created || p != path {
		t.Errorf("same lesson: %s, %v, %v", p, created, err)
	}
	if !os.SameFile(before, stat()) {
		t.Error("the same lesson was written again")
	}

	// A repeated pass that says it otherwise: replaced, the old text kept.
	if p, created, err := s.Put(t.Context(), newCard("k1", "another topic", "second")); err != nil ||
		created || p != path {
		t.Fatalf("other lesson: %s, %v, %v", p, created, err)
	}
	revs, err := s.History(t.Context(), "k1")
	if err != nil || len(revs) != 2 || revs[0].Message != "Write anew card: another topic" ||
		!strings.Contains(revs[0].Diff, "\n-- **Issue**: first\n") {
		t.Fatalf("history %+v, %v", revs, err)
	}

	// Reviewed by a user: stays.
	c, err := s.Get("k1")
	if err != nil {
		t.Fatal(err)
	}
	c.State = card.Reviewed
	mustPut(t, s, c)
	if p, created, err := s.Put(t.Context(), newCard("k1", "another topic", "second")); err != nil ||
		created || p != path {
		t.Errorf("same lesson after review: %v, %v", created, err)
	}
	var conflict *ConflictError
	if _, _, err := s.Put(t.Context(), newCard("k1", "third", "third")); !errors.As(err, &conflict) ||
		conflict.Path != path {
		t.Errorf("other lesson after review: %v, want a conflict", err)
	}
	if c, err := s.Get("k1"); err != nil || c.State != card.Reviewed || c.Topic != "another topic" {
		t.Errorf("after all that: %+v, %v", c, err)
	}
}

func TestPutNeverOverwritesAHandEdit(t *testing.T) {
	s := openStore(t, t.TempDir())
	path := mustPut(t, s, newCard("k1", "topic", "first"))
	c, err := s.Get("k1")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	byHand := append(b, "\nA user's remark.\n"...)
	if err := os.WriteFile(path, byHand, 0o600); err != nil {
		t.Fatal(err)
	}
	c.State = card.Reviewed
	var conflict *ConflictError
	if _, _, err := s.Put(t.Context(), c); !errors.As(err, &conflict) {
		t.Fatalf("got %v, want a conflict", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, byHand) {
		t.Fatalf("the edit is gone: %s, %v", now, err)
	}
	// Read again, it can be changed, and the remark stays.
	if c, err = s.Get("k1"); err != nil {
		t.Fatal(err)
	}
	c.State = card.Reviewed
	mustPut(t, s, c)
	if now, err := os.ReadFile(path); err != nil || !strings.Contains(string(now), "A user's remark.") ||
		!strings.Contains(string(now), "state: reviewed") {
		t.Errorf("%s, %v", now, err)
	}
	// A file broken by hand is left alone, too.
	if err := os.WriteFile(path, []byte("---\nbroken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Put(t.Context(), newCard("k1", "x", "y")); !errors.As(err, &conflict) {
		t.Errorf("broken file: got %v, want a conflict", err)
	}
}

func TestTwoStoresOneFolder(t *testing.T) {
	dir := t.TempDir()
	a, b := openStore(t, dir), openStore(t, dir)
	mustPut(t, a, newCard("k1", "topic", "text"))
	if _, created, err := b.Put(t.Context(), newCard("k1", "topic", "text")); err != nil || created {
		t.Errorf("second store: created %v, %v", created, err)
	}
	mustPut(t, a, newCard("k2", "seen after a rebuild", "text"))
	if err := b.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get("k2"); err != nil {
		t.Error(err)
	}
}

// A failed Rebuild leaves the store as it was. The list of reviews may be unreadable for a moment, as when the process
// has too many open files; here a folder takes its place.
func TestFailedRebuildChangesNothing(t *testing.T) {
	s := openStore(t, t.TempDir())
	if _, _, err := s.Put(t.Context(), newCard("k1", "topic", "x")); err != nil {
		t.Fatal(err)
	}
	list := s.opts.reviews
	if err := errors.Join(os.Rename(list, list+".away"), os.Mkdir(list, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := s.Rebuild(t.Context()); err == nil {
		t.Error("Rebuild returns no error for an unreadable list of reviews")
	}
	if c, err := s.Get("k1"); err != nil || c.Topic != "topic" || s.ReviewsDamage() != "" {
		t.Errorf("after the failure: %v, %v, damage %q", c, err, s.ReviewsDamage())
	}
	if err := errors.Join(os.Remove(list), os.Rename(list+".away", list)); err != nil {
		t.Fatal(err)
	}
	if err := s.Rebuild(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestBrokenCardsAreListedAndLeftAlone(t *testing.T) {
	dir := t.TempDir()
	month := filepath.Join(dir, "2026-01")
	if err := os.MkdirAll(filepath.Join(dir, "notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(month, 0o700); err != nil {
		t.Fatal(err)
	}
	good := string(newCard("k1", "good", "x").Markdown())
	files := map[string]string{
		filepath.Join(month, "a-k1.md"):   good,
		filepath.Join(month, "b-k1.md"):   good, // the same id again
		filepath.Join(month, "broken.md"): "---\ntype: knowledge_card\ntopic: [\n---\n",
		filepath.Join(month, "huge.md"):   strings.Repeat("x", card.MaxBytes+1),
		filepath.Join(month,
			"noid.md"): "---\ntype: knowledge_card\ntopic: t\nsource_task: s\n---\n- **Issue**: x\n",
		filepath.Join(month, "readme.txt"):  "not a card",
		filepath.Join(dir, "README.md"):     "not a card",
		filepath.Join(dir, "notes", "x.md"): "not a card",
	}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(month, "a-k1.md"), filepath.Join(month, "link.md")); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, dir)
	var got []string
	for _, b := range s.Broken() {
		got = append(got, filepath.Base(b.Path))
	}
	if want := "b-k1.md broken.md huge.md link.md noid.md"; strings.Join(got, " ") != want {
		t.Errorf("broken: %v, want %s", got, want)
	}
	if l := s.List(); len(l) != 1 || l[0].Path != filepath.Join(month, "a-k1.md") {
		t.Errorf("list: %+v", l)
	}
	if err := s.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, text := range files {
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%s changed, %v", path, err)
		}
	}
	if _, err := s.Get("nope"); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown id: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", file, filepath.Join(file, "below")} {
		if _, err := Open(dir, nil); err == nil {
			t.Errorf("opened %q", dir)
		}
	}
}

// faultyFS stops at the n-th step: a failure, or a crash, after which
// nothing works any more and what is on disk stays as it is.
type faultyFS struct {
	durable.OS
	left  int
	crash bool
	dead  bool
}

var errFault = errors.New("input/output error")

func (f *faultyFS) step() error {
	if f.dead {
		return errFault
	}
	f.left--
	if f.left == 0 {
		f.dead = f.crash
		return errFault
	}
	return nil
}

func (f *faultyFS) Open(name string, flag int) (durable.File, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	file, err := f.OS.Open(name, flag)
	return faultyFile{file, f}, err
}

func (f *faultyFS) Rename(from, to string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.OS.Rename(from, to)
}

// Remove works when other steps fail, but not after a crash.
func (f *faultyFS) Remove(name string) error {
	if f.dead {
		return errFault
	}
	return f.OS.Remove(name)
}

func (f *faultyFS) SyncDir(dir string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.OS.SyncDir(dir)
}

type faultyFile struct {
	durable.File
	fs *faultyFS
}

// WriteAt writes half of the data if it fails, as a full disk does.
func (f faultyFile) WriteAt(data []byte, off int64) (int, error) {
	if f.fs.dead {
		return 0, errFault
	}
	if err := f.fs.step(); err != nil {
		n, werr := f.File.WriteAt(data[:len(data)/2], off)
		return n, errors.Join(err, werr)
	}
	return f.File.WriteAt(data, off)
}

func (f faultyFile) Truncate(size int64) error {
	if f.fs.dead {
		return errFault
	}
	return f.File.Truncate(size)
}

func (f faultyFile) Sync() error {
	if err := f.fs.step(); err != nil {
		return err
	}
	return f.File.Sync()
}

// At every step a put can fail or the process can die; the card is then the
// old one or the new one, whole, and a reopened store puts it as if nothing
// had been.
func TestPutFaults(t *testing.T) {
	oldText, newText := "the old text", "the new text"
	for _, crash := range []bool{false, true} {
		for _, replace := range []bool{false, true} {
			completed := false
			for n := 1; n < 60 && !completed; n++ {
				t.Run(fmt.Sprintf("crash=%v/replace=%v/step=%d", crash, replace, n), func(t *testing.T) {
					dir := t.TempDir()
					s := openStore(t, dir)
					if replace {
						mustPut(t, s, newCard("k1", "topic", oldText))
					}
					s.fs = &faultyFS{left: n, crash: crash}
					_, _, err := s.Put(t.Context(), newCard("k1", "topic", newText))
					completed = err == nil
					if err != nil && !errors.Is(err, errFault) {
						t.Errorf("error %v does not name the fault", err)
					}
					if temps, _ := filepath.Glob(filepath.Join(dir, "*", durable.TempPrefix+"*")); !crash &&
						len(temps) > 0 {
						t.Errorf("a failed put left %v", temps)
					}
					again := openStore(t, dir)
					if b := again.Broken(); len(b) > 0 {
						t.Fatalf("broken card: %v", b)
					}
					c, err := again.Get("k1")
					switch {
					case err != nil && (replace || completed):
						t.Fatalf("the card is gone: %v", err)
					case err == nil && c.Issue[0] != newText && (c.Issue[0] != oldText || completed):
						t.Fatalf("the card says %q", c.Issue[0])
					}
					mustPut(t, again, newCard("k1", "topic", newText))
					if c, err := again.Get("k1"); err != nil || c.Issue[0] != newText {
						t.Fatalf("after putting again: %v, %v", c, err)
					}
					temps, err := filepath.Glob(filepath.Join(dir, "*", durable.TempPrefix+"*"))
					if err != nil || len(temps) > 0 {
						t.Errorf("left behind: %v, %v", temps, err)
					}
				})
			}
			if !completed {
				t.Error("no run without a fault: the loop is too short")
			}
		}
	}
}

func TestPutCancelled(t *testing.T) {
	s := openStore(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Put(ctx, newCard("k1", "t", "x")); !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v", err)
	}
	if _, err := s.Search(ctx, Query{Text: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("search: %v", err)
	}
	if _, err := s.Get("k1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the card was written: %v", err)
	}
}

// TestCards: the cards of a list are those that are still there, in its order.
func TestCards(t *testing.T) {
	s := openStore(t, t.TempDir())
	mustPut(t, s, newCard("a", "A", "the first"))
	mustPut(t, s, newCard("b", "B", "the second"))
	list := append([]Entry{{ID: "gone"}}, s.List()...)
	var got []string
	for _, c := range s.Cards(list) {
		got = append(got, c.ID)
	}
	if want := []string{list[1].ID, list[2].ID}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
