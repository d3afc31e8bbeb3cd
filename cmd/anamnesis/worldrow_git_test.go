//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/cmd/internal/exit"
	"anamnesis/worldstate"
	"anamnesis/worldstate/worldtest"
)

// TestRow03NestedRepositories: repositories inside the world, with commits and
// without, submodules and linked worktrees: their files are ordinary files,
// whatever their .git is stays to the byte, and no snapshot is empty there.
func TestRow03NestedRepositories(t *testing.T) {
	t.Parallel()
	eachFace(t, func(w *rowWorld) {
		git(w, w.dir, "init", "-q", "-b", "main")
		w.write("top", "1")
		for _, inner := range []string{"full", "bare-of-commits"} {
			w.write(inner+"/f", "1")
			git(w, w.path(inner), "init", "-q", "-b", "main")
		}
		git(w, w.path("full"), "add", ".")
		git(w, w.path("full"), "commit", "-qm", "inner")
		library := filepath.Join(w.top, "library")
		git(w, w.top, "init", "-q", "-b", "main", library)
		w.must(os.WriteFile(filepath.Join(library, "lib.c"), []byte("1"), 0o644))
		git(w, library, "add", ".")
		git(w, library, "commit", "-qm", "library")
		git(w, w.dir, "submodule", "--quiet", "add", library, "sub")
		git(w, w.dir, "add", "top", ".gitmodules", "sub")
		git(w, w.dir, "commit", "-qm", "top")
		git(w, w.dir, "worktree", "add", "-q", "linked")
		w.write("full/.gitignore", "*.o\n")
		w.write("full/x.o", "ignored")
		first := w.saved()
		if !first.Complete || len(first.Skipped) != 0 {
			w.Fatalf("the snapshot lacks something: %+v", first.Skipped)
		}
		want, gits := worldtest.Without(w.look().Whats(), ".git"), gitFiles(w.look())
		for _, p := range []string{"top", "full/f", "bare-of-commits/f", "sub/lib.c", "linked/top"} {
			w.write(p, "2")
		}
		w.remove("linked/.gitmodules")
		w.write("full/new", "2")
		w.write("fresh/g", "2")
		git(w, w.path("fresh"), "init", "-q")
		res := w.back(first)
		now := w.look()
		worldtest.RequireEqual(w, gitFilesOf(now, gits), gits, "the .git of every repository")
		for p, what := range want {
			if now[p].What != what {
				w.Errorf("%q is %q, want %q", p, now[p].What, what)
			}
		}
		if _, err := os.Stat(w.path("fresh/.git/HEAD")); err != nil || len(res.Kept) != 1 ||
			res.Kept[0].Path != "fresh/" {
			w.Errorf("the new repository: %v, kept %+v", err, res.Kept)
		}
		for _, p := range []string{"full", "sub", "linked", "bare-of-commits"} {
			git(w, w.path(p), "status", "--short")
		}
		git(w, w.path("full"), "fsck", "--strict")
		w.whole()
	})
}

// TestRow03NestedExcludes: what a repository inside excludes by its info/exclude
// stays through restores like any ignored file, and what it tracks all the same
// is held and comes back.
func TestRow03NestedExcludes(t *testing.T) {
	t.Parallel()
	heavy(t)
	eachFace(t, func(w *rowWorld) {
		w.write("lib/code", "1")
		w.write("lib/out.tmp", "precious")
		w.write("lib/kept.tmp", "1")
		w.write("out.tmp", "1")
		git(w, w.path("lib"), "init", "-q")
		w.write("lib/.git/info/exclude", "*.tmp\n")
		git(w, w.path("lib"), "add", "-f", "kept.tmp")
		first := w.saved()
		for _, p := range []string{"lib/code", "lib/kept.tmp", "out.tmp"} {
			w.write(p, "2")
		}
		w.write("lib/late.tmp", "precious")
		second := w.saved()
		for _, end := range []struct {
			s    worldstate.Snapshot
			want string
		}{{first, "1"}, {second, "2"}, {first, "1"}} {
			if res := w.back(end.s); !res.Exact {
				w.Errorf("not exact: %+v", res.Kept)
			}
			for _, p := range []string{"lib/code", "lib/kept.tmp", "out.tmp"} {
				w.holds(p, end.want)
			}
			w.holds("lib/out.tmp", "precious")
			w.holds("lib/late.tmp", "precious")
		}
		w.write("lib/.git/info/exclude", "") // the first snapshot's rules are its own
		w.back(second)
		w.back(first)
		w.holds("lib/out.tmp", "precious")
		w.holds("lib/late.tmp", "precious")
		if out := git(w, w.top, "--git-dir="+w.store, "ls-tree", "-r", "--name-only", string(second.ID)); strings.Contains(out, "lib/out.tmp") || !strings.Contains(out, "lib/kept.tmp") {
			w.Errorf("the snapshot holds %q", out)
		}
		w.whole()
	})
}

// gitFiles is what lies in or is a .git, at any depth.
func gitFiles(tree worldtest.Tree) map[string]string {
	out := map[string]string{}
	for p, s := range tree {
		if strings.Contains("/"+p+"/", "/.git/") {
			out[p] = s.What
		}
	}
	return out
}

// gitFilesOf is gitFiles within the repositories that another look knows.
func gitFilesOf(tree worldtest.Tree, known map[string]string) map[string]string {
	out := map[string]string{}
	for p, what := range gitFiles(tree) {
		i := strings.Index("/"+p+"/", "/.git/")
		if _, ok := known[p[:i]+".git"]; ok {
			out[p] = what
		}
	}
	return out
}

// TestRow04UserRepository: HEAD, branch, index, stash and configuration stand
// to the byte; what was staged stays staged, commits made between steps stay,
// and the user's gc and ours do not know of each other.
func TestRow04UserRepository(t *testing.T) {
	t.Parallel()
	eachFace(t, func(w *rowWorld) {
		git(w, w.dir, "init", "-q", "-b", "main")
		w.write("a", "1")
		w.write("tracked.log", "1")
		git(w, w.dir, "add", ".")
		git(w, w.dir, "commit", "-qm", "one")
		w.write("a", "stashed")
		git(w, w.dir, "stash", "-q")
		w.write(".gitignore", "*.log\n")
		w.write("a", "staged")
		git(w, w.dir, "add", "a")
		w.write("a", "and changed")
		w.write("un.log", "ignored and untracked")
		before := gitFiles(w.look())
		first := w.saved()
		w.write("a", "2")
		w.write("tracked.log", "2")
		w.back(first)
		worldtest.RequireEqual(w, gitFiles(w.look()), before, "the user's .git")
		w.holds("a", "and changed")
		w.holds("tracked.log", "1") // the index tracks it, so the rule does not hide it
		w.holds("un.log", "ignored and untracked")
		if out := git(w, w.dir, "diff", "--cached", "--name-only"); out != "a\n" {
			w.Errorf("staged is %q", out)
		}
		git(w, w.dir, "commit", "-qam", "between two steps")
		head := git(w, w.dir, "rev-parse", "HEAD")
		w.write("a", "3")
		w.back(first)
		if now := git(w, w.dir, "rev-parse", "HEAD"); now != head {
			w.Errorf("HEAD moved from %s to %s", head, now)
		}
		git(w, w.dir, "reflog", "expire", "--expire=now", "--all")
		git(w, w.dir, "gc", "-q", "--aggressive", "--prune=now")
		w.whole()
		w.write("a", "4")
		w.back(first)
		w.holds("a", "and changed")
		if out := git(w, w.dir, "fsck", "--strict"); strings.Contains(out, "error") {
			w.Error(out)
		}
	})
}

// TestRow04WithoutGit: no repository, no git program, no home, a broken
// configuration or a broken .git change nothing of what a snapshot does.
func TestRow04WithoutGit(t *testing.T) {
	t.Parallel()
	heavy(t)
	broken := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(broken, []byte("[core\nworktree = /etc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env     []string
		spoil   func(w *rowWorld)
		noticed bool
	}{
		"no repository and no git": {env: []string{"PATH="}},
		"no home":                  {env: []string{"PATH=/usr/bin:/bin"}},
		"broken configuration":     {env: []string{"PATH=", "HOME=" + filepath.Dir(broken), "GIT_CONFIG_GLOBAL=" + broken, "GIT_DIR=/nowhere", "GIT_INDEX_FILE=/nowhere", "GIT_OBJECT_DIRECTORY=/nowhere"}},
		"broken index": {spoil: func(w *rowWorld) {
			w.write(".git/HEAD", "ref: refs/heads/main\n")
			w.write(".git/index", "DIRC rubbish")
		}, noticed: true},
		"a .git file that leads nowhere": {spoil: func(w *rowWorld) { w.write(".git", "gitdir: /nowhere\n") }},
		"a .git file of rubbish":         {spoil: func(w *rowWorld) { w.write(".git", "rubbish") }, noticed: true},
		"a .git that is a link":          {spoil: func(w *rowWorld) { w.must(os.Symlink("/nowhere", w.path(".git"))) }, noticed: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRowWorld(t)
			env := c.env
			if env == nil {
				env = os.Environ()
			}
			w.face = programFace{t: t, dir: w.dir, store: w.store, env: env}
			if c.spoil != nil {
				c.spoil(w)
			}
			w.write("a", "1")
			first := w.saved()
			if (len(first.Notes) > 0) != c.noticed {
				w.Errorf("notes: %+v", first.Notes)
			}
			w.write("a", "2")
			w.write("b", "2")
			w.back(first)
			w.holds("a", "1")
			w.whole()
		})
	}
}

// TestRow11Worktrees: two worktrees of one repository, and two directories
// with one store, never restore into each other unless they are told to.
func TestRow11Worktrees(t *testing.T) {
	t.Parallel()
	eachFace(t, func(w *rowWorld) {
		git(w, w.dir, "init", "-q", "-b", "main")
		w.write("a", "main")
		git(w, w.dir, "add", ".")
		git(w, w.dir, "commit", "-qm", "one")
		other := newRowWorld(w.T)
		w.remove("../other")
		other.dir, other.store = filepath.Join(w.top, "other"), w.store
		git(w, w.dir, "worktree", "add", "-q", other.dir)
		if _, ok := w.face.(programFace); ok {
			other.face = programFace{t: w.T, dir: other.dir, store: other.store}
		} else {
			other.face = packageFace{other.openPackage(nil)}
		}
		first := w.saved()
		other.write("a", "other")
		second := other.saved()
		before := w.look()
		_, err := w.plan(second.ID, worldstate.PlanOptions{})
		w.refused(err, exit.Refused, "another directory")
		_, err = w.restore(second.ID, noOptions)
		w.refused(err, exit.Refused, "another directory")
		worldtest.Untouched(w, before, w.look(), nil, "a refused restore")
		_, err = other.restore(first.ID, noOptions)
		w.refused(err, exit.Refused, "another directory")
		other.holds("a", "other")
		res, err := other.restore(first.ID,
			worldstate.RestoreOptions{PlanOptions: worldstate.PlanOptions{OtherWorld: true}})
		w.must(err)
		other.holds("a", "main")
		if fmt.Sprint(res.Written) != "[a]" {
			w.Errorf("%+v", res)
		}
		w.whole()
	})
}
