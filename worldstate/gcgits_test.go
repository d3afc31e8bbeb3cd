package worldstate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anamnesis/worldstate/internal/gitfmt"
)

// TestGCRefusesGitsWork: where a user's git works in a store, a collection names what
// keeps it from removing anything. It goes on once that is removed.
func TestGCRefusesGitsWork(t *testing.T) {
	b := newBench(t, nil)
	ids := b.steps(2)
	tree := filepath.Join(t.TempDir(), "tree")
	for name, c := range map[string]struct{ do, undo func() }{
		"worktrees": {func() { b.inStore("worktree", "add", "-q", "--detach", tree, string(ids[0])) }, func() { b.inStore("worktree", "remove", tree) }},
		"logs": {func() {
			b.inStore("-c", "core.logAllRefUpdates=always", "update-ref", "refs/heads/own", string(ids[0]))
		},
			func() { b.must(os.RemoveAll(filepath.Join(b.store, "logs"))) }},
		"index":             {func() { b.inStore("read-tree", string(ids[0])) }, func() { b.must(os.Remove(filepath.Join(b.store, "index"))) }},
		"symbolic-ref HEAD": {func() { b.inStore("update-ref", "--no-deref", "HEAD", string(ids[0])) }, func() { b.inStore("symbolic-ref", "HEAD", "refs/heads/latest") }},
	} {
		packs := b.packs()
		c.do()
		if _, err := GC(b.Context(), b.store, nil); !errors.Is(err, ErrRefused) ||
			!strings.Contains(err.Error(), name) || b.packs() != packs {
			t.Errorf("%s: %v; %d packs, were %d", name, err, b.packs(), packs)
		}
		c.undo()
		b.gc(nil)
		b.hasAll(ids)
		ids = append(ids, b.steps(1)...)
	}
	b.fsck()
}

// TestRefsOfUser: a user's branch keeps a snapshot of a task that is gone. A collection
// refuses where a user's ref leads to what is no snapshot, or is in no pack, and says what
// helps; all else reads the store as without it.
func TestRefsOfUser(t *testing.T) {
	b := newBench(t, nil)
	first := b.save().ID
	b.taskOf("gone", 5)
	b.write("f", "of the task that is gone")
	gone, err := b.w.Save(b.Context(), SaveOptions{Ref: "1", Parent: first})
	b.must(err)
	b.taskOf("cli", 6)
	b.write("f", "later")
	last, err := b.w.Save(b.Context(), SaveOptions{Ref: "2", Parent: first})
	b.must(err)
	b.inStore("branch", "kept", string(gone.ID))
	drop := &GCOptions{Live: func(task string) bool { return task != "gone" }, MaxBytes: 1}
	if r := b.gc(drop); len(r.Dropped) != 1 {
		t.Fatalf("dropped are %v", r.Dropped)
	}
	ids := []ID{first, gone.ID, last.ID}
	b.hasAll(ids)
	refused := func(ref, object, helps string) {
		t.Helper()
		if got, err := b.w.Resolve(b.Context(), string(last.ID[:12])); err != nil || got != last.ID {
			t.Errorf("beside %s: %s, %v", ref, got, err)
		}
		r, err := b.w.Verify(b.Context())
		if b.must(err); !r.OK {
			t.Errorf("beside %s: %+v", ref, r)
		}
		packs := b.packs()
		if _, err := GC(b.Context(), b.store, drop); !errors.Is(err, gitfmt.ErrCorrupt) ||
			!strings.Contains(err.Error(), object) || !strings.HasSuffix(err.Error(), helps) || b.packs() != packs {
			t.Errorf("%s: %v; want %q, and at the end %q", ref, err, object, helps)
		}
	}
	b.inStore("tag", "-a", "-m", "this one", "step", string(first))
	refused("refs/tags/step", b.inStore("rev-parse", "step"),
		"'git --git-dir="+b.store+" update-ref -d refs/tags/step' removes that ref")
	b.inStore("update-ref", "-d", "refs/tags/step")
	// a submodule is no object of the store
	b.inStore("update-index", "--add", "--cacheinfo", "160000,"+gitfmt.Hash{9}.String()+",sub")
	own := b.inStore("commit-tree", "-m", "mine", "-p", string(first), b.inStore("write-tree"))
	b.must(os.Remove(filepath.Join(b.store, "index")))
	b.inStore("branch", "own", own)
	refused("refs/heads/own", own, "removes that ref")
	b.inStore("repack", "-dq")
	b.gc(drop)
	b.hasAll(ids)
	if got := b.inStore("log", "-1", "--format=%s", "own"); got != "mine" {
		t.Errorf("own is %q", got)
	}
	b.fsck()
}

// TestTagWhileCollecting: a branch that comes when the collection has looked for the
// last time is there all the same, and so is what lies about loose: it is git's.
func TestTagWhileCollecting(t *testing.T) {
	b := newBench(t, nil)
	id := string(b.save().ID)
	b.write("notes", "long ago")
	old := b.inStore("hash-object", "-w", b.path("notes"))
	file := filepath.Join(b.store, "objects", old[:2], old[2:])
	b.must(os.Chtimes(file, time.Now().AddDate(-1, 0, 0), time.Now().AddDate(-1, 0, 0)))
	b.gc(&GCOptions{Hook: func(at string) {
		if at == "repacked" {
			b.inStore("branch", "late", id)
		}
	}})
	b.gc(nil)
	if got := b.inStore("rev-parse", "late^{commit}"); got != id {
		t.Errorf("the branch is at %s, want %s", got, id)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("a loose object is gone: %v", err)
	}
	b.fsck()
}
