package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func newRepo(t *testing.T) *Repo {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "[odd]*")                                        // no pattern
	if err := os.MkdirAll(filepath.Join(dir, newName, "objects"), 0o700); err != nil { // a dead one's
		t.Fatal(err)
	}
	r, err := Create(dir, "/.index/")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func commit(t *testing.T, r *Repo, message string, files map[string][]byte) string {
	t.Helper()
	ada := Person{"Ada <x>\n", ""}
	id, err := r.Commit(Commit{Message: message, Author: ada, By: ada, At: time.Unix(1e9, 0), Files: files})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestCommitAndRead(t *testing.T) {
	r := newRepo(t)
	one := commit(t, r, "one", map[string][]byte{"a/b/c.md": []byte("1"), "d.md": []byte("2")})
	two := commit(t, r, "two\n\nbody", map[string][]byte{"a/b/c.md": nil, "d.md": []byte("3"), "a.b": []byte("4")})
	if again := commit(t, r, "nothing", map[string][]byte{"d.md": []byte("3")}); again != two {
		t.Errorf("a commit that changes nothing was made: %s", again)
	}
	if b := gitIn(t, r.dir, "show", one+":a/b/c.md"); b != "1" {
		t.Errorf("%q", b)
	}
	files := map[string][]byte{"a/b/c.md": []byte("1"), "d.md": []byte("3"), "a.b": []byte("1"), "new": {}}
	if got, err := r.Differing(files); err != nil ||
		!slices.Equal(slices.Sorted(maps.Keys(got)), []string{"a.b", "a/b/c.md", "new"}) {
		t.Errorf("files that differ from the current commit: %q, %v", got, err)
	}
	revs, err := r.Log(t.Context(), "d.md")
	if err != nil || len(revs) != 2 || revs[0].ID != two || revs[0].Message != "two" ||
		revs[0].Author.Name != "Ada x" || revs[0].Author.Email != "unknown" {
		t.Errorf("%+v, %v", revs, err)
	}
	revs, err = r.Log(t.Context(), "a/b/c.md")
	if err != nil || len(revs) != 2 || !revs[0].Gone {
		t.Errorf("%+v, %v", revs, err)
	}
}

// A lock that a process of ours left is dropped; git's own is respected.
func TestLocks(t *testing.T) {
	r := newRepo(t)
	commit(t, r, "one", map[string][]byte{"a": []byte("1")})
	if _, err := r.lock(); err != nil { // and dies
		t.Fatal(err)
	}
	dead := filepath.Join(r.git, tempPrefix+"1")
	if err := os.WriteFile(dead, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	commit(t, r, "two", map[string][]byte{"a": []byte("2")})
	for _, left := range []string{filepath.Join(r.git, "index.lock"), dead, filepath.Join(r.dir, newName)} {
		if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", left, err)
		}
	}
	for _, name := range []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"} {
		path := filepath.Join(r.git, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Commit(Commit{Message: "x", Files: map[string][]byte{"a": []byte("3")}}); !errors.Is(err, ErrBusy) {
			t.Errorf("with %s: %v", name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// A branch that cannot be read is not taken for one without commits, which the next commit would begin anew.
func TestUnreadableBranch(t *testing.T) {
	r := newRepo(t)
	commit(t, r, "one", map[string][]byte{"a": []byte("1")})
	path := filepath.Join(r.git, filepath.FromSlash(firstBranch))
	if err := os.WriteFile(path, []byte("\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Commit(Commit{Message: "two", Files: map[string][]byte{"a": []byte("2")}}); err == nil ||
		!strings.Contains(err.Error(), firstBranch+" of ") {
		t.Errorf("committed on a branch that cannot be read: %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "\x00\x00" {
		t.Errorf("the branch became %q, %v", data, err)
	}
}

// What a user stages between two commits stays staged, and what git wrote
// into its index is read again.
func TestIndexBesideGit(t *testing.T) {
	r := newRepo(t)
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", r.dir}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		ours, theirs := fmt.Sprintf("ours%d", i), fmt.Sprintf("theirs%d", i)
		write(ours)
		commit(t, r, ours, map[string][]byte{ours: []byte(ours)})
		if i%2 == 0 {
			write(theirs)
			git("add", theirs)
		}
	}
	if got, want := git("status", "--porcelain"), "A  theirs0\nA  theirs2\nA  theirs4\n"; got != want {
		t.Errorf("status:\n%swant\n%s", got, want)
	}
}

// An index that a user's git wrote in another form is kept up to date, too.
func TestIndexForms(t *testing.T) {
	for _, form := range [][]string{
		{"update-index", "--split-index"},
		{"sparse-checkout", "set", "--cone", "--sparse-index", "a"},
		{"update-index", "--index-version", "4"},
		{"-c", "index.skipHash=true", "update-index", "--force-write-index"},
	} {
		r := newRepo(t)
		files := map[string][]byte{"a/1": []byte("1"), "b/1": []byte("1")}
		commit(t, r, "one", files)
		gitIn(t, r.dir, "reset", "-q", "--hard")
		gitIn(t, r.dir, form...)
		if err := os.WriteFile(filepath.Join(r.dir, "a/1"), []byte("2"), 0o600); err != nil {
			t.Fatal(err)
		}
		commit(t, r, "two", map[string][]byte{"a/1": []byte("2")})
		if out := gitIn(t, r.dir, "status", "--porcelain"); out != "" {
			t.Errorf("after %v: %s", form, out)
		}
		gitIn(t, r.dir, "fsck", "--strict")
	}
}

func TestUncommitted(t *testing.T) {
	r := newRepo(t)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("same", "1")
	write("edited", "1")
	write("gone", "1")
	commit(t, r, "one",
		map[string][]byte{"same": []byte("1"), "edited": []byte("1"), "gone": []byte("1"), "other": []byte("1")})
	write("edited", "2")
	write("new", "3")
	write("long", "12345")
	if err := os.Remove(filepath.Join(r.dir, "gone")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("same", filepath.Join(r.dir, "link")); err != nil {
		t.Fatal(err)
	}
	got, err := r.Uncommitted([]string{"same", "edited", "new", "long", "link"},
		func(p string) bool { return p != "other" }, 4)
	if err != nil || len(got) != 3 || string(got["edited"]) != "2" || string(got["new"]) != "3" || got["gone"] != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, has := got["gone"]; !has {
		t.Error("a removed file was not seen")
	}
	gitIn(t, r.dir, "update-index", "--skip-worktree", "gone", "edited")
	if got, err = r.Uncommitted([]string{"same", "edited"}, func(p string) bool { return p != "other" }, 4); err != nil || len(got) != 1 || string(got["edited"]) != "2" {
		t.Errorf("of a sparse checkout: %q, %v", got, err)
	}
}

func TestOpenRefusesLinkedWorktree(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no repository: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: elsewhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a linked worktree: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := newRepo(t)
	commit(t, r, "one", map[string][]byte{"a": []byte("1")})
	if _, err := r.Log(ctx, "."); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	args = append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x"}, args...)
	out, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// Commits continue in a repository that git, or an earlier version of this program, packed.
func TestCommitAfterPacking(t *testing.T) {
	r := newRepo(t)
	commit(t, r, "one", map[string][]byte{"2026-01/a.md": []byte("a"), "2026-01/b.md": []byte("b")})
	gitIn(t, r.dir, "gc", "--quiet", "--prune=now")
	commit(t, r, "two", map[string][]byte{"2026-01/a.md": []byte("A")})
	if got, err := r.Differing(map[string][]byte{"2026-01/b.md": []byte("b")}); err != nil || len(got) != 0 {
		t.Errorf("%q, %v", got, err)
	}
	gitIn(t, r.dir, "multi-pack-index", "write")
	commit(t, r, "three", map[string][]byte{"2026-01/c.md": []byte("c")})
	gitIn(t, r.dir, "fsck", "--full", "--strict")
}

// What a fetch refuses is not stored.
func TestFetchRefuses(t *testing.T) {
	long := strings.Repeat("long ", MaxBlobBytes/5+1)
	for name, c := range map[string]struct {
		files    map[string]string
		replaced string
		want     error
	}{
		"nothing":          {files: map[string]string{"a.md": "theirs"}},
		"a long file":      {files: map[string]string{"a b.md": long}, want: ErrTooMuch},
		"filter-repo":      {files: map[string]string{"a.md": "theirs"}, replaced: "filter-repo/commit-map", want: ErrReplaced},
		"an older version": {files: map[string]string{"a.md": "theirs"}, replaced: "anamnesis-replaced", want: ErrReplaced},
	} {
		t.Run(name, func(t *testing.T) {
			r, there := newRepo(t), t.TempDir()
			commit(t, r, "one", map[string][]byte{"mine.md": []byte("mine")})
			gitIn(t, there, "init", "-q", "-b", "main")
			for path, text := range c.files {
				if err := os.WriteFile(filepath.Join(there, path), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			gitIn(t, there, "add", "-A")
			gitIn(t, there, "commit", "-q", "-m", "theirs")
			tip := strings.TrimSpace(gitIn(t, there, "rev-parse", "HEAD"))
			if c.replaced != "" {
				path := filepath.Join(r.git, filepath.FromSlash(c.replaced))
				line := tip + "\n"
				if strings.Contains(c.replaced, "map") {
					line = "old new\n" + tip + " " + strings.Repeat("1", 40) + "\n"
				}
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(line), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := r.Fetch(t.Context(), there)
			if !errors.Is(err, c.want) || c.want == nil && got != tip {
				t.Fatalf("%q, %v", got, err)
			}
			stored := exec.Command("git", "-C", r.dir, "cat-file", "-e", tip).Run() == nil
			if left, _ := filepath.Glob(filepath.Join(r.git, quarantineName)); stored != (c.want == nil) ||
				len(left) > 0 {
				t.Errorf("stored %v, left behind %v", stored, left)
			}
		})
	}
}

// Each version and each message is passed, of branches and of tags.
func TestTexts(t *testing.T) {
	r := newRepo(t)
	commit(t, r, "one", map[string][]byte{"2026-01/a.md": []byte("first")})
	commit(t, r, "two", map[string][]byte{"2026-01/a.md": []byte("second")})
	gitIn(t, r.dir, "tag", "-a", "-m", "tagged", "v1")
	var got []string
	if err := r.Texts(t.Context(), func(path string, data []byte) { got = append(got, path+": "+strings.TrimSpace(string(data))) }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	got = slices.Compact(got)
	want := []string{Messages + ": one", Messages + ": tagged", Messages + ": two", "2026-01/a.md: first",
		"2026-01/a.md: second"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
