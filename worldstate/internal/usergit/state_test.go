package usergit_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/usergit"
	"anamnesis/worldstate/worldtest"
)

// TestStateAsGit: what files say of HEAD, references and index is what git says, in each place where a
// repository keeps them. The index is restored from what was read, and is the same tree.
func TestStateAsGit(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"sha1": nil, "sha256": {"--object-format=sha256"}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "r")
			worldtest.Git(t, filepath.Dir(dir), append([]string{"init", "-q", "-b", "main", dir}, args...)...)
			git := func(args ...string) string { return strings.TrimSpace(worldtest.Git(t, dir, args...)) }
			write := func(path, text string) {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var r usergit.Reader
			check := func(where string) usergit.State {
				t.Helper()
				s, err := r.Read(t.Context(), dir)
				if err != nil || s.Unread != "" {
					t.Fatalf("%s: %v, %q", where, err, s.Unread)
				}
				if refs := git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags", "refs/stash"); refs != s.Refs {
					t.Errorf("%s: references %q, git says %q", where, s.Refs, refs)
				}
				if head := headOf(t, dir); head != s.Commit {
					t.Errorf("%s: HEAD %q, git says %q", where, s.Commit, head)
				}
				tree := git("write-tree")
				if got := restored(t, dir, s); got != tree {
					t.Errorf("%s: the index came back as %s, not %s", where, got, tree)
				}
				return s
			}
			if s := check("unborn"); s.Head != "refs/heads/main" || s.Commit != "" {
				t.Errorf("unborn: %+v", s)
			}
			for _, path := range []string{"a", "d/b", "d/e/c", "f/g"} {
				write(path, path)
			}
			git("add", "-A")
			check("staged, nothing committed")
			git("commit", "-qm", "one")
			if s := check("committed"); s.Staged != "" {
				t.Errorf("committed: %q", s.Staged)
			}
			write("d/b", "again")
			git("add", "d/b")
			if s := check("staged"); strings.Count(s.Staged, "\x00") != 1 || !strings.HasSuffix(s.Staged, "\td/b\x00") {
				t.Errorf("staged: %q", s.Staged)
			}
			git("tag", "v1")
			git("branch", "other")
			git("stash")
			git("pack-refs", "--all")
			write("new", "new")
			git("add", "-N", "new")
			check("packed, one to be added later")
			git("checkout", "-q", "--detach")
			if s := check("detached"); s.Head != "" || s.Commit == "" {
				t.Errorf("detached: %+v", s)
			}
			dir = filepath.Join(filepath.Dir(dir), "w")
			git = func(args ...string) string { return strings.TrimSpace(worldtest.Git(t, dir, args...)) }
			worldtest.Git(t, filepath.Join(filepath.Dir(dir), "r"), "worktree", "add", "-q", dir, "other")
			r = usergit.Reader{}
			if s := check("worktree"); s.Head != "refs/heads/other" {
				t.Errorf("worktree: %+v", s)
			}
			git("update-index", "--split-index")
			check("a split index")
		})
	}
}

// TestReadAgain: what an interrupted call did not read, the next one reads, although no file has changed.
func TestReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	worldtest.Git(t, dir, "init", "-q", "-b", "main")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var r usergit.Reader
	for settled := time.Now().Add(2 * fsys.RacySlack); time.Now().Before(settled); { // then it relies on the stamps
		if s, err := r.Read(ctx, dir); err == nil {
			t.Fatalf("an interrupted call returns %+v and no error", s)
		}
	}
	if s, err := r.Read(t.Context(), dir); err != nil || s.Head != "refs/heads/main" {
		t.Errorf("after the interruption: %+v, %v", s, err)
	}
}

// restored puts the index of a state into another index, and returns its tree.
func restored(t *testing.T, dir string, s usergit.State) string {
	t.Helper()
	other := filepath.Join(t.TempDir(), "index")
	run := func(in string, args ...string) string {
		out, err := usergit.Command{Top: dir, Stdin: in, Env: []string{"GIT_INDEX_FILE=" + other}}.Run(
			t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if s.Commit != "" {
		run("", "read-tree", s.Commit)
	}
	run(s.Staged, "update-index", "-z", "--index-info")
	return run("", "write-tree")
}

// headOf is the commit of HEAD, empty if there is none.
func headOf(t *testing.T, dir string) string {
	t.Helper()
	git := usergit.Command{Top: dir}
	id, err := git.Run(t.Context(), "rev-parse", "-q", "--verify", "HEAD")
	if err != nil {
		return ""
	}
	return id
}

// TestDuring names what a repository is in the middle of.
func TestDuring(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	worldtest.Git(t, dir, "init", "-q")
	for _, c := range [][2]string{{"", ""}, {"BISECT_LOG", "bisect"}, {"REVERT_HEAD", "revert"}, {"CHERRY_PICK_HEAD", "cherry-pick"}, {"MERGE_HEAD", "merge"}, {"rebase-apply", "rebase"}, {"rebase-merge", "rebase"}} {
		if err := os.MkdirAll(filepath.Join(dir, ".git", c[0]), 0o755); err != nil {
			t.Fatal(err)
		}
		if s, err := new(usergit.Reader).Read(t.Context(), dir); err != nil || s.During != c[1] {
			t.Errorf("%s: %q, %v", c[0], s.During, err)
		}
	}
}
