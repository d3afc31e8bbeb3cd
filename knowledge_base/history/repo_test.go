package history

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/knowledge_base/history/internal/gitdir"
)

func newRepo(t *testing.T) *Repo {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "[odd]*")                                              // no pattern
	if err := os.MkdirAll(filepath.Join(dir, newPrefix+"1", "objects"), 0o700); err != nil { // a dead one's
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
	id, _, err := r.Commit(Commit{Message: message, Author: ada, By: ada, At: time.Unix(1e9, 0), Files: files})
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
	if b, err := r.Read(one, "a/b/c.md"); err != nil || string(b) != "1" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := r.Read(two, "a/b/c.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed file: %v", err)
	}
	revs, err := r.Log(t.Context(), func(p string) bool { return p == "d.md" })
	if err != nil || len(revs) != 2 || revs[0].ID != two || revs[0].Message != "two" || revs[0].Author.Name != "Ada x" || revs[0].Author.Email != "unknown" {
		t.Errorf("%+v, %v", revs, err)
	}
	revs, err = r.Log(t.Context(), func(p string) bool { return p == "a/b/c.md" })
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
	dead := filepath.Join(r.git, gitdir.TempPrefix+"1")
	if err := os.WriteFile(dead, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	commit(t, r, "two", map[string][]byte{"a": []byte("2")})
	for _, left := range []string{filepath.Join(r.git, "index.lock"), dead, filepath.Join(r.dir, newPrefix+"1")} {
		if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", left, err)
		}
	}
	for _, name := range ongoing() {
		path := filepath.Join(r.git, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Commit(Commit{Message: "x", Files: map[string][]byte{"a": []byte("3")}}); !errors.Is(err, ErrBusy) {
			t.Errorf("with %s: %v", name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
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

// TestIndexForms: an index that a user's git wrote in another form is read, or
// it is said what has git write it in one that is.
func TestIndexForms(t *testing.T) {
	for _, c := range []struct{ form, back [][]string }{
		{[][]string{{"update-index", "--split-index"}}, [][]string{{"update-index", "--no-split-index"}}},
		{[][]string{{"sparse-checkout", "set", "--cone", "--sparse-index", "a"}}, [][]string{{"sparse-checkout", "disable"}}},
		{[][]string{{"update-index", "--index-version", "4"}}, nil},
		{nil, nil}, // without a checksum
	} {
		r := newRepo(t)
		git := func(args ...string) {
			t.Helper()
			if out, err := exec.Command("git", append([]string{"-C", r.dir}, args...)...).CombinedOutput(); err != nil || args[0] == "status" && len(out) > 0 {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
		}
		files := map[string][]byte{"a/1": []byte("1"), "b/1": []byte("1")}
		commit(t, r, "one", files)
		git("reset", "-q", "--hard")
		for _, args := range c.form {
			git(args...)
		}
		path := filepath.Join(r.git, "index")
		if c.form == nil {
			data, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, append(data[:len(data)-sha1.Size], make([]byte, sha1.Size)...), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		r, err := Open(r.dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range c.back {
			if _, err := r.readIndex(); err == nil || !strings.Contains(err.Error(), "'git "+strings.Join(args, " ")+"'") {
				t.Errorf("after %v: %v; want that it names %v", c.form, err, args)
			}
			git(args...)
		}
		if err := os.WriteFile(filepath.Join(r.dir, "a/1"), []byte("2"), 0o600); err != nil {
			t.Fatal(err)
		}
		commit(t, r, "two", map[string][]byte{"a/1": []byte("2")})
		git("status", "--porcelain")
		git("fsck", "--strict")
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
	commit(t, r, "one", map[string][]byte{"same": []byte("1"), "edited": []byte("1"), "gone": []byte("1"), "other": []byte("1")})
	write("edited", "2")
	write("new", "3")
	write("long", "12345")
	if err := os.Remove(filepath.Join(r.dir, "gone")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("same", filepath.Join(r.dir, "link")); err != nil {
		t.Fatal(err)
	}
	got, err := r.Uncommitted([]string{"same", "edited", "new", "long", "link"}, func(p string) bool { return p != "other" }, 4)
	if err != nil || len(got) != 3 || string(got["edited"]) != "2" || string(got["new"]) != "3" || got["gone"] != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, has := got["gone"]; !has {
		t.Error("a removed file was not seen")
	}
}

// TestUncommittedOfCopy: the first commit in a copied folder updates the index to the marks
// of the copies, so that they are not read again.
func TestUncommittedOfCopy(t *testing.T) {
	r := newRepo(t)
	path := filepath.Join(r.dir, "a")
	write := func() {
		t.Helper()
		if err := errors.Join(os.WriteFile(path+"~", []byte("1"), 0o600), os.Rename(path+"~", path)); err != nil {
			t.Fatal(err)
		}
	}
	write()
	commit(t, r, "one", map[string][]byte{"a": []byte("1")})
	write() // the copy
	if changed, err := r.Uncommitted([]string{"a"}, func(string) bool { return true }, 4); len(changed) > 0 || err != nil {
		t.Fatal(changed, err)
	}
	commit(t, r, "two", map[string][]byte{"b": []byte("2")})
	known, _, err := r.marks()
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil || known["a"].Inode != uint32(st.Ino) {
		t.Errorf("the index has inode %d, the file %d: %v", known["a"].Inode, st.Ino, err)
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
	if _, err := r.Log(ctx, func(string) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
