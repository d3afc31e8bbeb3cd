package worldstate

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/worldtest"
)

// TestGCKeepsWhatGitNames: a snapshot of a task that is gone stays as far as a user's git
// in the store names it, in whatever way, and goes where nothing does.
func TestGCKeepsWhatGitNames(t *testing.T) {
	const logs = "core.logAllRefUpdates=always"
	for name, c := range map[string]struct {
		does  func(store, tree func(args ...string), gone, stays string)
		keeps string // what of the snapshot: "^{commit}", ":f"; "" nothing
	}{
		"nothing":       {func(store, tree func(...string), gone, stays string) {}, ""},
		"detached HEAD": {func(store, _ func(...string), gone, _ string) { store("update-ref", "--no-deref", "HEAD", gone) }, "^{commit}"},
		"worktree":      {func(_, tree func(...string), gone, _ string) { tree("checkout", "-q", gone) }, "^{commit}"},
		"index":         {func(_, tree func(...string), gone, _ string) { tree("checkout", "-q", gone, "--", "f") }, ":f"},
		"old index": {func(_, tree func(...string), gone, _ string) {
			tree("checkout", "-q", gone, "--", "f")
			tree("update-index", "--index-version", "4")
		}, ":f"},
		"split index": {func(_, tree func(...string), gone, _ string) {
			tree("checkout", "-q", gone, "--", "f")
			tree("update-index", "--split-index")
		}, ":f"},
		"reflog": {func(store, _ func(...string), gone, stays string) {
			store("-c", logs, "update-ref", "refs/heads/own", gone)
			store("-c", logs, "update-ref", "refs/heads/own", stays)
		}, "^{commit}"},
		"reflog of a worktree": {func(_, tree func(...string), gone, stays string) {
			tree("-c", logs, "checkout", "-q", gone)
			tree("-c", logs, "checkout", "-q", stays)
		}, "^{commit}"},
		"ORIG_HEAD": {func(_, tree func(...string), gone, stays string) {
			tree("checkout", "-q", gone)
			tree("reset", "-q", "--hard", stays)
		}, "^{commit}"},
		"FETCH_HEAD": {func(_, tree func(...string), _, _ string) { tree("fetch", "-q", ".", "refs/anamnesis/gone/1") }, "^{commit}"},
		"merge": {func(_, tree func(...string), gone, _ string) {
			tree("merge", "-q", "--no-commit", "--no-ff", "-X", "theirs", gone)
		}, "^{commit}"},
		"bisect": {func(_, tree func(...string), gone, _ string) {
			tree("bisect", "start")
			tree("bisect", "bad", gone)
		}, "^{commit}"},
		"commit": {func(_, tree func(...string), gone, _ string) { // of a user's own, of files that are in our packs alone
			tree("checkout", "-q", gone, "--", "f")
			tree("commit", "-q", "-m", "mine")
		}, ":f"},
		"stash": {func(_, tree func(...string), gone, _ string) {
			tree("checkout", "-q", gone, "--", "f")
			tree("stash", "push", "-q")
		}, ":f"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.write("f", "stays")
			first := b.save().ID
			b.taskOf("gone", 5)
			b.write("f", "goes with its task")
			gone, err := b.w.Save(b.Context(), SaveOptions{Ref: "1", Parent: first})
			b.must(err)
			b.taskOf("cli", 6)
			b.write("f", "later")
			last, err := b.w.Save(b.Context(), SaveOptions{Ref: "2", Parent: first})
			b.must(err)
			tree := filepath.Join(t.TempDir(), "tree")
			b.inStore("worktree", "add", "-q", "--detach", tree, string(last.ID))
			c.does(func(args ...string) { b.inStore(args...) }, func(args ...string) { worldtest.Git(t, tree, args...) }, string(gone.ID), string(last.ID))
			wanted := map[string]string{"": string(gone.ID), "^{commit}": string(gone.ID), ":f": gitfmt.HashObject(gitfmt.BlobObject, []byte("goes with its task")).String()}
			r := b.gc(&GCOptions{Live: func(task string) bool { return task != "gone" }, MaxBytes: 1})
			if len(r.Dropped) != 1 {
				t.Fatalf("dropped are %v", r.Dropped)
			}
			err = exec.Command("git", "--git-dir="+b.store, "cat-file", "-e", wanted[c.keeps]).Run()
			if kept := err == nil; kept != (c.keeps != "") {
				t.Errorf("kept: %v", kept)
			}
			worldtest.Git(t, tree, "status")
			worldtest.Git(t, tree, "fsck", "--strict")
			b.fsck()
		})
	}
}

// TestGCPassesWhatGitLacks: what a reflog or a head names and git has dropped ends no
// collection.
func TestGCPassesWhatGitLacks(t *testing.T) {
	b := newBench(t, nil)
	ids := b.steps(2)
	tree := b.inStore("write-tree")
	own := b.inStore("commit-tree", "-m", "mine", "-p", string(ids[0]), tree)
	b.must(os.WriteFile(filepath.Join(b.store, "ORIG_HEAD"), []byte(own+"\n"), 0o600))
	b.must(os.WriteFile(filepath.Join(b.store, "FETCH_HEAD"), []byte(gitfmt.Hash{7}.String()+"\tbranch\n"), 0o600))
	b.must(os.Remove(filepath.Join(b.store, "objects", tree[:2], tree[2:])))
	b.gc(nil)
	b.hasAll(ids)
}

// TestSubmoduleOfUser: a user's own commit may name a submodule, which is no object of
// the store.
func TestSubmoduleOfUser(t *testing.T) {
	b := newBench(t, nil)
	id := b.save().ID
	b.inStore("update-index", "--add", "--cacheinfo", "160000,"+gitfmt.Hash{9}.String()+",sub")
	b.inStore("branch", "own", b.inStore("commit-tree", "-m", "mine", "-p", string(id), b.inStore("write-tree")))
	b.fsck()
	b.gc(nil)
	b.fsck()
}
