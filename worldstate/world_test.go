package worldstate

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/worldtest"
)

// look reads a directory: path → type, permissions and content.
func look(t testing.TB, root string) map[string]string {
	t.Helper()
	return worldtest.Snapshot(t, root).Whats()
}

// sameWorld fails the test with the paths in which two looks differ.
func sameWorld(t testing.TB, got, want map[string]string, when string) {
	t.Helper()
	worldtest.RequireEqual(t, got, want, when)
}

// bench is a world and its store in fresh directories.
type bench struct {
	testing.TB
	dir, store string
	w          *World
}

func newBench(t testing.TB, o *Options) *bench {
	t.Helper()
	top := worldtest.TempDir(t)
	b := &bench{TB: t, dir: filepath.Join(top, "world"), store: filepath.Join(top, "store")}
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b.open(o)
	return b
}

func (b *bench) open(o *Options) {
	b.Helper()
	w, err := Open(b.dir, b.store, o)
	if err != nil {
		b.Fatal(err)
	}
	b.w = w
	b.Cleanup(func() { w.Close() })
}

// packDir is the store's directory of packs.
func (b *bench) packDir() string { return filepath.Join(b.store, "objects", "pack") }

// journalPath is the file of the world's journal.
func (b *bench) journalPath() string {
	return restore.JournalOf(b.store, keyOf(b.dir)).Path
}

func (b *bench) path(rel string) string { return filepath.Join(b.dir, rel) }

func (b *bench) write(rel, content string) {
	b.Helper()
	b.must(os.MkdirAll(filepath.Dir(b.path(rel)), 0o755))
	b.must(os.WriteFile(b.path(rel), []byte(content), 0o644))
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) save() Snapshot {
	b.Helper()
	s, err := b.w.SaveNext(context.Background(), "test")
	b.must(err)
	return s
}

// jump is what a task does: save, plan, restore.
func (b *bench) jump(target ID) Result {
	b.Helper()
	b.save()
	p, err := b.w.Plan(context.Background(), target, nil)
	b.must(err)
	res, err := b.w.Restore(context.Background(), p)
	b.must(err)
	return res
}

// fsck checks the store with git and with Verify.
func (b *bench) fsck() {
	b.Helper()
	if out := worldtest.Git(b, b.dir, "--git-dir="+b.store, "fsck", "--strict", "--full"); strings.Contains(out, "error") || strings.Contains(out, "warning") || strings.Contains(out, "missing") {
		b.Fatalf("git fsck --strict: %s", out)
	}
	r, err := b.w.Verify(context.Background())
	b.must(err)
	if !r.OK || r.Unfinished {
		b.Fatalf("verify: %+v", r)
	}
}

// lookAtSnapshot returns a snapshot in the form of look.
func lookAtSnapshot(t testing.TB, w *World, id ID) map[string]string {
	t.Helper()
	c, err := w.byID(id)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tree.Load(w.objects, c.Tree, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for e := range l.All() {
		if e.Kind == tree.KindDir {
			out[e.Path] = fmt.Sprintf("dir %o", e.Perm)
			continue
		}
		data, err := w.objects.Read(e.Hash, gitfmt.BlobObject, e.Path)
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == tree.KindLink {
			out[e.Path] = "link " + string(data)
		} else {
			out[e.Path] = fmt.Sprintf("file %o %x", e.Perm, sha256.Sum256(data))
		}
	}
	return out
}
