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
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/worldtest"
)

func emptyRefs(t interface {
	Fatal(...any)
	TempDir() string
}) *Store {
	dir := filepath.Join(t.TempDir(), "store")
	for _, d := range []string{"refs/heads", "refs/anamnesis", "objects", fsys.StateDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/latest\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &Store{Dir: dir}
}

func refID(n int) gitfmt.Hash { return gitfmt.Hash{0: 1, 18: byte(n >> 8), 19: byte(n)} }

func (s *Store) gitRefs(t testing.TB) map[string]string {
	t.Helper()
	out, err := exec.Command("git", "--git-dir="+s.Dir, "for-each-ref", "--format=%(refname) %(objectname)").Output()
	if err != nil {
		t.Fatalf("git for-each-ref: %v", err)
	}
	refs := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		refs[name] = id
	}
	return refs
}

// sameRefs holds what a process reads against what is wanted.
func sameRefs(got map[string]gitfmt.Hash, want map[string]gitfmt.Hash) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d refs, want %d", len(got), len(want))
	}
	for name, h := range want {
		if got[name] != h {
			return fmt.Errorf("%s is %s, want %s", name, got[name], h)
		}
	}
	return nil
}

// TestRefsLikeGit: over many updates, with removals, this process, a new one
// and plain git read the same refs.
func TestRefsLikeGit(t *testing.T) {
	s := emptyRefs(t)
	want := make(map[string]gitfmt.Hash)
	for i := range 3*MaxRefUpdates + 5 {
		set := map[string]gitfmt.Hash{Latest: refID(i), WorldPrefix + "w": refID(i), fmt.Sprintf("%st/%d", TaskPrefix, i): refID(i)}
		if i%40 == 39 {
			set[fmt.Sprintf("%st/%d", TaskPrefix, i-3)] = gitfmt.Hash{}
		}
		if err := s.Update(set); err != nil {
			t.Fatal(err)
		}
		for name, h := range set {
			if want[name] = h; h.IsZero() {
				delete(want, name)
			}
		}
		s.cache.checked = false // another operation
		for who, store := range map[string]*Store{"this process": s, "a new one": {Dir: s.Dir}} {
			if got, err := store.All(); err != nil || sameRefs(got, want) != nil {
				t.Fatalf("update %d, %s: %v, %v", i, who, err, sameRefs(got, want))
			}
		}
		if i%7 == 0 {
			got := s.gitRefs(t)
			for name, h := range want {
				if got[name] != h.String() || len(got) != len(want) {
					t.Fatalf("update %d: git reads %d refs, %s as %q; want %d, %s", i, len(got), name, got[name], len(want), h)
				}
			}
		}
	}
	if loose, err := s.readLooseRefs(nil); err != nil || len(loose.byName) > MaxRefUpdates+2 {
		t.Errorf("%d loose refs, %v; want no more than the log takes", len(loose.byName), err)
	}
}

// TestRefsAfterPowerCut: only the log and what was packed are synced. Whatever
// older state the loose files are left in, the refs are those of the log.
func TestRefsAfterPowerCut(t *testing.T) {
	worldtest.Heavy(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := emptyRefs(t)
		want := make(map[string]gitfmt.Hash)
		var history [][2]string // loose files as they were written: name, content
		for i := range rapid.SampledFrom([]int{2, 8, MaxRefUpdates - 1, MaxRefUpdates + 1}).Draw(rt, "updates") {
			set := map[string]gitfmt.Hash{Latest: refID(i), fmt.Sprintf("%st/%d", TaskPrefix, i%5): refID(i)}
			if err := s.Update(set); err != nil {
				rt.Fatal(err)
			}
			if s.cache.tail.updates == 0 {
				history = nil // packing has synced the directories
			}
			for _, name := range slices.Sorted(maps.Keys(set)) {
				h := set[name]
				want[name] = h
				if s.cache.tail.updates > 0 {
					history = append(history, [2]string{name, h.String() + "\n"})
				}
			}
		}
		for _, l := range history { // later ones, too: the last choice stands
			left := rapid.IntRange(0, 3).Draw(rt, "left")
			path := filepath.Join(s.Dir, l[0])
			if left < 3 {
				os.Remove(path) // another name of the same file shows what it held
			}
			switch left {
			case 1:
				os.WriteFile(path, nil, 0o600)
			case 2:
				os.WriteFile(path, []byte(l[1]), 0o600)
			}
		}
		if got, err := (&Store{Dir: s.Dir}).All(); err != nil || sameRefs(got, want) != nil {
			rt.Fatalf("%v, %v", err, sameRefs(got, want))
		}
	})
}

// TestRefsTornLog: a last line cut anywhere is an update nobody was told of; the
// next one takes its place. Damage before the last line is not passed over.
func TestRefsTornLog(t *testing.T) {
	s := emptyRefs(t)
	for i := range 3 {
		if err := s.Update(map[string]gitfmt.Hash{Latest: refID(i)}); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(s.LogPath())
	if err != nil {
		t.Fatal(err)
	}
	line := strings.LastIndexByte(string(whole[:len(whole)-1]), '\n') + 1
	for n := line; n < len(whole); n++ {
		if err := errors.Join(os.WriteFile(s.LogPath(), whole[:n], 0o600), os.WriteFile(filepath.Join(s.Dir, Latest), []byte(refID(1).String()), 0o600)); err != nil {
			t.Fatal(err)
		}
		again := &Store{Dir: s.Dir}
		if refs, err := again.All(); err != nil || refs[Latest] != refID(1) {
			t.Fatalf("cut at %d: %v, %v", n, refs, err)
		}
		if err := again.Update(map[string]gitfmt.Hash{Latest: refID(9)}); err != nil {
			t.Fatal(err)
		}
		if refs, err := (&Store{Dir: s.Dir}).All(); err != nil || refs[Latest] != refID(9) {
			t.Fatalf("cut at %d, then updated: %v, %v", n, refs, err)
		}
	}
	for _, i := range []int{0, 9, line - 2} {
		bad := append([]byte(nil), whole...)
		bad[i] ^= 1
		if err := os.WriteFile(s.LogPath(), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (&Store{Dir: s.Dir}).All(); !errors.Is(err, gitfmt.ErrCorrupt) {
			t.Errorf("byte %d flipped: %v", i, err)
		}
	}
}

// TestRefsByGit: what git sets by itself counts, before and after packing.
func TestRefsByGit(t *testing.T) {
	s := emptyRefs(t)
	set := func(name string, h gitfmt.Hash) {
		path := filepath.Join(s.Dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path+".lock", []byte(h.String()+"\n"), 0o600), os.Rename(path+".lock", path)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range MaxRefUpdates + 3 {
		if err := s.Update(map[string]gitfmt.Hash{fmt.Sprintf("%st/%d", TaskPrefix, i): refID(i)}); err != nil {
			t.Fatal(err)
		}
		if s.cache.checked = false; i == 2 {
			set("refs/heads/mine", refID(200))
			set(TaskPrefix+"t/1", refID(201))
		}
	}
	s.cache.checked = false // another operation
	refs, err := s.All()
	if err != nil || refs["refs/heads/mine"] != refID(200) || refs[TaskPrefix+"t/1"] != refID(201) || refs[TaskPrefix+"t/2"] != refID(2) {
		t.Errorf("%v, %v", refs, err)
	}
}

// Who writes into a branch's file, and not another in its place as git does, says
// nothing of the step that was saved with it.
func TestStepsFileIsItsOwn(t *testing.T) {
	s := emptyRefs(t)
	step := TaskPrefix + "t/1"
	if err := s.Update(map[string]gitfmt.Hash{Latest: refID(1), WorldPrefix + "w": refID(1), step: refID(1)}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{Latest, WorldPrefix + "w"} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(refID(9).String()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := (&Store{Dir: s.Dir}).All(); err != nil || got[step] != refID(1) || got[Latest] != refID(9) {
		t.Errorf("%v, %v", got, err)
	}
	data, err := os.ReadFile(filepath.Join(s.Dir, step))
	if err != nil || string(data) != refID(1).String()+"\n" {
		t.Errorf("git reads %q, %v", data, err)
	}
}

// Git, packing refs meanwhile, removes loose ones and the folders it emptied.
func TestRefsWhileGitPacks(t *testing.T) {
	s := emptyRefs(t)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		dir := filepath.Join(s.Dir, TaskPrefix, "t")
		for {
			select {
			case <-end:
				return
			default:
			}
			loose, err := os.ReadDir(dir)
			for _, e := range loose {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
			if err == nil {
				_ = os.Remove(dir)
			}
		}
	}()
	want := make(map[string]gitfmt.Hash)
	for i := range 8 * MaxRefUpdates {
		name := fmt.Sprintf("%st/%d", TaskPrefix, i)
		want[name] = refID(i)
		if err := s.Update(map[string]gitfmt.Hash{name: refID(i)}); err != nil {
			t.Errorf("update %d: %v", i, err)
			break
		}
		s.cache.checked = false // another operation
	}
	close(end)
	<-ended
	if got, err := (&Store{Dir: s.Dir}).All(); err != nil || sameRefs(got, want) != nil {
		t.Errorf("%v, %v", sameRefs(got, want), err)
	}
}

// Git packs refs while this process saves: what it had read before it waited for
// its turn takes no ref away.
func TestRefsBesideGitPacking(t *testing.T) {
	s := emptyRefs(t)
	worldtest.Git(t, s.Dir, "init", "-q", "--bare", ".")
	want := map[string]gitfmt.Hash{}
	save := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			name := fmt.Sprintf("%st/%d", TaskPrefix, i)
			want[name] = refID(i)
			s.cache.checked = false // another operation
			if err := s.Update(map[string]gitfmt.Hash{name: refID(i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	save(0, MaxRefUpdates+8)
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
	gone := TaskPrefix + "t/3" // stands in packed-refs
	fmt.Fprintf(in, "start\ndelete %s\nprepare\n", gone)
	answers := bufio.NewScanner(out)
	for range 2 {
		if answers.Scan(); !strings.HasSuffix(answers.Text(), ": ok") {
			t.Fatalf("git says %q", answers.Text())
		}
	}
	save(100, 100+2*MaxRefUpdates)
	if _, err := io.WriteString(in, "commit\n"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	delete(want, gone)
	save(300, 300+2*MaxRefUpdates)
	for who, store := range map[string]*Store{"this process": s, "a new one": {Dir: s.Dir}} {
		if got, err := store.All(); err != nil || sameRefs(got, want) != nil {
			t.Errorf("%s: %v, %v", who, err, sameRefs(got, want))
		}
	}
	if n := len(s.gitRefs(t)); n != len(want) {
		t.Errorf("git reads %d refs, want %d", n, len(want))
	}
}

// A user's git packs refs again after the first save that follows a killed one.
func TestSweepDropsDeadLockOfPackedRefs(t *testing.T) {
	for there, stays := range map[string]bool{ourLock: false, "": true} {
		s := emptyRefs(t)
		path := s.PackedPath() + ".lock"
		if err := os.WriteFile(path, []byte(there), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Sweep()
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("a lock holding %q: %v; want that it stays %v", there, err, stays)
		}
	}
}

// A lock of ours that is there has outlived its process: the store's lock is
// held. That of git is waited for by those who must not go on without.
func TestLockOfPackedRefs(t *testing.T) {
	s := emptyRefs(t)
	path := s.PackedPath() + ".lock"
	for _, c := range []struct {
		there  string
		locked bool
	}{{ourLock, true}, {"", false}} {
		if err := os.WriteFile(path, []byte(c.there), 0o600); err != nil {
			t.Fatal(err)
		}
		release, locked, err := s.lockPackedRefs(false)
		if err != nil || locked != c.locked {
			t.Fatalf("a lock holding %q: locked %v, %v; want %v", c.there, locked, err, c.locked)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("a lock holding %q: %v", c.there, err)
		}
		if locked {
			release()
		}
	}
	for _, set := range []map[string]gitfmt.Hash{{TaskPrefix + "t/1": refID(1), TaskPrefix + "t/2": refID(2)}, {TaskPrefix + "t/1": {}}} {
		if err := s.Update(set); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.All(); err != nil || len(got) != 1 {
		t.Errorf("beside git's lock: %d refs, %v", len(got), err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, TaskPrefix+"t/1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("beside git's lock the file of a removed ref: %v", err)
	}
}

// What git has packed since this process read the refs is not written over.
func TestGitPacksMeanwhile(t *testing.T) {
	s := emptyRefs(t)
	worldtest.Git(t, s.Dir, "init", "-q", "--bare", ".")
	tree := strings.TrimSpace(worldtest.Git(t, s.Dir, "hash-object", "-w", "-t", "tree", os.DevNull))
	commit := strings.TrimSpace(worldtest.Git(t, s.Dir, "commit-tree", "-m", "mine", tree))
	h, ok := gitfmt.ParseHash(commit)
	if !ok {
		t.Fatal(commit)
	}
	if err := s.Update(map[string]gitfmt.Hash{TaskPrefix + "t/1": h, TaskPrefix + "t/2": h}); err != nil {
		t.Fatal(err)
	}
	s.cache.checked = false
	if _, err := s.Look(); err != nil {
		t.Fatal(err)
	}
	worldtest.Git(t, s.Dir, "update-ref", "refs/heads/mine", commit)
	worldtest.Git(t, s.Dir, "pack-refs", "--all")
	if err := s.Update(map[string]gitfmt.Hash{TaskPrefix + "t/1": {}}); err != nil {
		t.Fatal(err)
	}
	if got := s.gitRefs(t)["refs/heads/mine"]; got != commit {
		t.Errorf("git's branch is %q, want %s", got, commit)
	}
	got, err := (&Store{Dir: s.Dir}).All()
	if want := map[string]gitfmt.Hash{"refs/heads/mine": h, TaskPrefix + "t/2": h}; err != nil || sameRefs(got, want) != nil {
		t.Errorf("%v, %v", err, sameRefs(got, want))
	}
}

// A user's branch that git moves, removes or makes while this process saves
// stays as git left it when refs are packed.
func TestGitSetsMeanwhile(t *testing.T) {
	s := emptyRefs(t)
	worldtest.Git(t, s.Dir, "init", "-q", "--bare", ".")
	tree := strings.TrimSpace(worldtest.Git(t, s.Dir, "hash-object", "-w", "-t", "tree", os.DevNull))
	var commits [3]string
	for i := range commits {
		commits[i] = strings.TrimSpace(worldtest.Git(t, s.Dir, "commit-tree", "-m", fmt.Sprint(i), tree))
	}
	first, _ := gitfmt.ParseHash(commits[0])
	second, _ := gitfmt.ParseHash(commits[1])
	third, _ := gitfmt.ParseHash(commits[2])
	before := func(names ...string) {
		t.Helper()
		for _, name := range names {
			worldtest.Git(t, s.Dir, "update-ref", "refs/heads/"+name, commits[0])
		}
		s.cache.checked = false // another operation
		if _, err := s.Look(); err != nil {
			t.Fatal(err)
		}
	}
	before("moved", "gone")
	worldtest.Git(t, s.Dir, "update-ref", "refs/heads/moved", commits[1])
	worldtest.Git(t, s.Dir, "update-ref", "-d", "refs/heads/gone")
	worldtest.Git(t, s.Dir, "update-ref", "refs/heads/new", commits[1])
	many := map[string]gitfmt.Hash{Latest: first}
	for i := range MaxRefUpdates + 1 {
		many[fmt.Sprintf("%st/%d", TaskPrefix, i)] = first
	}
	if err := s.Update(many); err != nil { // as many are packed
		t.Fatal(err)
	}
	s.cache.checked = false
	if err := s.Update(map[string]gitfmt.Hash{TaskPrefix + "t/1": {}}); err != nil { // now they are
		t.Fatal(err)
	}
	before("late")
	refs, err := s.cache.refs.pack(s.PackedPath())
	if err != nil {
		t.Fatal(err)
	}
	worldtest.Git(t, s.Dir, "update-ref", "refs/heads/late", commits[2])
	if err := s.tookPacked(refs); err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(many)
	delete(want, TaskPrefix+"t/1")
	maps.Copy(want, map[string]gitfmt.Hash{"refs/heads/moved": second, "refs/heads/new": second, "refs/heads/late": third})
	for who, store := range map[string]*Store{"this process": s, "a new one": {Dir: s.Dir}} {
		if got, err := store.All(); err != nil || sameRefs(got, want) != nil {
			t.Errorf("%s: %v, %v", who, err, sameRefs(got, want))
		}
	}
	for name, is := range s.gitRefs(t) {
		if want[name].String() != is {
			t.Errorf("git reads %s of %s, want %s", is, name, want[name])
		}
	}
}

// TestStoreChangedRefs: whatever is done to loose refs between the operations of a
// World, each operation sees the refs as one that reads everything does.
func TestStoreChangedRefs(t *testing.T) {
	worldtest.Heavy(t)
	rapid.Check(t, func(rt *rapid.T) {
		must := func(err error) {
			if err != nil {
				rt.Helper()
				rt.Fatal(err)
			}
		}
		s := emptyRefs(t)
		names := []string{Latest, WorldPrefix + "w", TaskPrefix + "t/1", TaskPrefix + "t/2", TaskPrefix + "u/1", "refs/tags/a", "refs/tags/deep/b"}
		for i := range rapid.IntRange(1, 40).Draw(rt, "operations") {
			name := rapid.SampledFrom(names).Draw(rt, "name")
			path := filepath.Join(s.Dir, name)
			line := []byte(refID(i).String() + "\n")
			switch rapid.IntRange(0, 5).Draw(rt, "kind") {
			case 0, 1, 2:
				s.Begin()
				must(s.Update(map[string]gitfmt.Hash{Latest: refID(i), name: refID(i), fmt.Sprintf("%st/%d", TaskPrefix, i): refID(i)}))
			case 3: // as git does
				must(os.MkdirAll(filepath.Dir(path), 0o700))
				must(os.WriteFile(path+".lock", line, 0o600))
				must(os.Rename(path+".lock", path))
			case 4:
				_ = os.Remove(path)
				_ = os.Remove(filepath.Dir(path)) // where it is empty now
			case 5:
				must(os.MkdirAll(filepath.Dir(path)+"-", 0o700))
				must(os.Rename(filepath.Dir(path)+"-", filepath.Join(s.Dir, "refs", fmt.Sprint("moved", i))))
			}
			if rapid.Bool().Draw(rt, "look") {
				s.Begin()
				got, err := s.All()
				must(err)
				want, err := (&Store{Dir: s.Dir}).All()
				must(err)
				must(sameRefs(got, want))
			}
		}
	})
}
