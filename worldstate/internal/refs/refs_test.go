package refs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/worldtest"
)

// emptyStore makes a repository without commits in the present format.
func emptyStore(t interface {
	Fatal(...any)
	TempDir() string
}) *Store {
	s := &Store{Dir: filepath.Join(t.TempDir(), "store")}
	for _, d := range []string{"refs/heads", "refs/anamnesis", "objects", fsys.StateDir} {
		if err := os.MkdirAll(filepath.Join(s.Dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(s.Dir, "HEAD"), []byte("ref: refs/heads/latest\n"), 0o600), s.UpgradeFormat()); err != nil {
		t.Fatal(err)
	}
	return s
}

// commits makes n commits in a store, for git takes no other ids.
func (s *Store) commits(t *testing.T, n int) []gitfmt.Hash {
	t.Helper()
	worldtest.Git(t, s.Dir, "init", "-q", "--bare", ".")
	tree := strings.TrimSpace(worldtest.Git(t, s.Dir, "hash-object", "-w", "-t", "tree", os.DevNull))
	ids := make([]gitfmt.Hash, n)
	for i := range ids {
		ids[i],
			_ = gitfmt.ParseHash(strings.TrimSpace(worldtest.Git(t, s.Dir, "commit-tree", "-m", fmt.Sprint(i), tree)))
	}
	return ids
}

func refID(n int) gitfmt.Hash { return gitfmt.Hash{0: 1, 18: byte(n >> 8), 19: byte(n)} }

// gitRefs returns the refs as git reads them.
func (s *Store) gitRefs(t testing.TB) map[string]gitfmt.Hash {
	t.Helper()
	out, err := exec.Command("git", "--git-dir="+s.Dir, "for-each-ref", "--format=%(refname) %(objectname)").Output()
	if err != nil {
		t.Fatalf("git for-each-ref: %v", err)
	}
	refs := make(map[string]gitfmt.Hash)
	for line := range strings.Lines(string(out)) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		refs[name], _ = gitfmt.ParseHash(id)
	}
	return refs
}

// sameRefs compares what is read with what is wanted.
func sameRefs(got, want map[string]gitfmt.Hash) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d refs, want %d: %v", len(got), len(want), got)
	}
	for name, h := range want {
		if got[name] != h {
			return fmt.Errorf("%s is %s, want %s", name, got[name], h)
		}
	}
	return nil
}

// check compares what this process, a new one and git read.
func (s *Store) check(t *testing.T, when string, want map[string]gitfmt.Hash) {
	t.Helper()
	maps.DeleteFunc(want, func(_ string, h gitfmt.Hash) bool { return h.IsZero() })
	for who, store := range map[string]*Store{"this process": s, "a new one": {Dir: s.Dir}} {
		if got, err := store.All(); err != nil || sameRefs(got, want) != nil {
			t.Errorf("%s, %s: %v, %v", when, who, err, sameRefs(got, want))
		}
	}
	if err := sameRefs(s.gitRefs(t), want); err != nil {
		t.Errorf("%s, git: %v", when, err)
	}
}

func (s *Store) must(t *testing.T, set map[string]gitfmt.Hash) {
	t.Helper()
	if err := s.Update(set); err != nil {
		t.Fatal(err)
	}
}

// TestRefsLikeGit: over many updates, with removals, this process, a new one and git
// read the same refs, and no ref has a file of its own.
func TestRefsLikeGit(t *testing.T) {
	s := emptyStore(t)
	want := make(map[string]gitfmt.Hash)
	for i := range 30 {
		set := map[string]gitfmt.Hash{Latest: refID(i), WorldPrefix + "w": refID(i),
			fmt.Sprintf("%st/%d", TaskPrefix, i): refID(i)}
		if i%4 == 3 {
			set[fmt.Sprintf("%st/%d", TaskPrefix, i-3)] = gitfmt.Hash{}
		}
		s.must(t, set)
		maps.Copy(want, set)
		if i%7 == 0 {
			s.check(t, fmt.Sprint("update ", i), want)
		}
	}
	s.check(t, "at the end", want)
	if loose, err := s.readLoose(); err != nil || len(loose) > 0 {
		t.Errorf("%d loose refs, %v", len(loose), err)
	}
}

// TestUsersRefs: what a user sets and removes with git counts, loose and packed. What
// is saved over it counts again, for git as well, and a user's own branch stays loose.
func TestUsersRefs(t *testing.T) {
	s := emptyStore(t)
	ids := s.commits(t, 3)
	step, gone := TaskPrefix+"t/1", TaskPrefix+"t/2"
	want := map[string]gitfmt.Hash{Latest: ids[0], step: ids[0], gone: ids[0]}
	s.must(t, want)
	s.check(t, "saved", want)
	for _, name := range []string{Latest, step, "refs/heads/mine", "refs/tags/mine"} {
		worldtest.Git(t, s.Dir, "update-ref", name, ids[1].String())
		want[name] = ids[1]
	}
	s.check(t, "set by git", want)
	worldtest.Git(t, s.Dir, "update-ref", "-d", gone)
	want[gone] = gitfmt.Hash{}
	s.check(t, "removed by git", want)
	next := map[string]gitfmt.Hash{Latest: ids[2], step: {}, TaskPrefix + "t/3": ids[2]}
	s.must(t, next)
	maps.Copy(want, next)
	s.check(t, "saved over it", want)
	if _, err := os.Stat(filepath.Join(s.Dir, "refs/heads/mine")); err != nil {
		t.Errorf("the user's branch: %v", err)
	}
	worldtest.Git(t, s.Dir, "pack-refs", "--all")
	s.check(t, "packed by git", want)
	s.must(t, map[string]gitfmt.Hash{Latest: ids[1]})
	want[Latest] = ids[1]
	s.check(t, "saved after that", want)
}

// TestGitMeanwhile: what git packs, sets, removes and makes between a look and the
// update after it is not written over.
func TestGitMeanwhile(t *testing.T) {
	s := emptyStore(t)
	ids := s.commits(t, 2)
	want := map[string]gitfmt.Hash{Latest: ids[0], TaskPrefix + "t/1": ids[0]}
	s.must(t, want)
	for _, name := range []string{"moved", "gone", "packed"} {
		worldtest.Git(t, s.Dir, "update-ref", "refs/heads/"+name, ids[0].String())
	}
	if _, err := s.All(); err != nil { // what follows happens within one operation
		t.Fatal(err)
	}
	worldtest.Git(t, s.Dir, "pack-refs", "--all")
	worldtest.Git(t, s.Dir, "update-ref", "refs/heads/moved", ids[1].String())
	worldtest.Git(t, s.Dir, "update-ref", "-d", "refs/heads/gone")
	worldtest.Git(t, s.Dir, "update-ref", "refs/heads/new", ids[1].String())
	if err := s.Update(map[string]gitfmt.Hash{TaskPrefix + "t/1": ids[1]}); err != nil {
		t.Fatal(err)
	}
	maps.Copy(want, map[string]gitfmt.Hash{
		TaskPrefix + "t/1": ids[1], "refs/heads/moved": ids[1], "refs/heads/new": ids[1], "refs/heads/packed": ids[0],
	})
	s.check(t, "saved", want)
}

// TestGitHoldsPackedRefs: an update waits for the git command that holds packed-refs,
// and keeps what that has done.
func TestGitHoldsPackedRefs(t *testing.T) {
	s := emptyStore(t)
	id := s.commits(t, 1)[0]
	gone := TaskPrefix + "t/3"
	s.must(t, map[string]gitfmt.Hash{gone: id, Latest: id})
	cmd := exec.Command("git", "--git-dir="+s.Dir, "update-ref", "--stdin")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(in, "start\ndelete %s\nprepare\n", gone)
	answers := bufio.NewScanner(out)
	for range 2 {
		if answers.Scan(); !strings.HasSuffix(answers.Text(), ": ok") {
			t.Fatalf("git says %q", answers.Text())
		}
	}
	updated := make(chan error, 1)
	go func() { updated <- s.Update(map[string]gitfmt.Hash{TaskPrefix + "t/4": id}) }()
	_, err = io.WriteString(in, "commit\n")
	if err := errors.Join(err, in.Close(), cmd.Wait(), <-updated); err != nil {
		t.Fatal(err)
	}
	s.check(t, "after both", map[string]gitfmt.Hash{Latest: id, TaskPrefix + "t/4": id})
}

// TestSweepDropsDeadLock: a lock of packed-refs that a killed process has left as ours
// goes with the next sweep, and with the next update. Git's stays.
func TestSweepDropsDeadLock(t *testing.T) {
	for stays, leave := range map[bool]func(path string) error{
		false: func(path string) error { return os.Symlink(ourLock, path) },
		true:  func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		s := emptyStore(t)
		path := s.PackedPath() + ".lock"
		if err := leave(path); err != nil {
			t.Fatal(err)
		}
		s.Sweep()
		if _, err := os.Lstat(path); (err == nil) != stays {
			t.Errorf("%v; want that it stays %v", err, stays)
		}
	}
	s := emptyStore(t)
	if err := os.Symlink(ourLock, s.PackedPath()+".lock"); err != nil {
		t.Fatal(err)
	}
	s.must(t, map[string]gitfmt.Hash{Latest: refID(1)})
}

// TestBadPackedRefs: what is no packed-refs file is told as damage; lines in another
// order, with remarks and what tags lead to, are read.
func TestBadPackedRefs(t *testing.T) {
	s := emptyStore(t)
	a, b := refID(1).String()+" "+TaskPrefix+"t/1\n", refID(2).String()+" "+Latest+"\n"
	for text, ok := range map[string]bool{
		"# pack-refs with: peeled \n" + b + a: true, packedHeader + a + "^" + refID(3).String() + "\n" + b: true, a + "\n" + b: true,
		"": false, a + strings.TrimSuffix(b, "\n"): false, a + b[:20]: false, a + b[1:]: false, strings.ToUpper(a) + b: false, a + "x": false,
		strings.Replace(a, "refs/", "refsX", 1): false,
	} {
		if err := os.WriteFile(s.PackedPath(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := (&Store{Dir: s.Dir}).All()
		if ok &&
			(err != nil || sameRefs(got, map[string]gitfmt.Hash{TaskPrefix + "t/1": refID(1),
				Latest: refID(2)}) != nil) || !ok && !errors.Is(err, gitfmt.ErrCorrupt) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
