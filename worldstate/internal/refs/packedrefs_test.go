package refs

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/gitfmt"
)

// packedStore gives a store whose steps are packed into several blocks, and what
// its refs are.
func packedStore(t *testing.T) (*Store, map[string]gitfmt.Hash) {
	t.Helper()
	s := emptyRefs(t)
	t.Cleanup(s.cache.forget)
	want := map[string]gitfmt.Hash{Latest: refID(1), WorldPrefix + "w": refID(2)}
	for i := range 6 * packedBlockBytes / 64 {
		want[fmt.Sprintf("%st/%d", TaskPrefix, i)] = refID(i)
	}
	if err := s.Update(want); err != nil {
		t.Fatal(err)
	}
	if n := len(s.cache.refs.packed.blocks); n < 5 || len(s.cache.refs.over) != 2 {
		t.Fatalf("%d blocks, %d refs in memory: nothing is tested", n, len(s.cache.refs.over))
	}
	return s, want
}

// allowed fails where a ref is told as something else than what it is or an
// error of the kind, and reports how many were errors.
func allowed(t *testing.T, what string, s *Set, want map[string]gitfmt.Hash, kind error) (failed int) {
	t.Helper()
	for name, h := range want {
		got, err := s.Get(name)
		switch {
		case err == nil && got != h:
			t.Fatalf("%s: %s is %s, want %s", what, name, got, h)
		case err != nil && !errors.Is(err, kind):
			t.Fatalf("%s: %s: %v, want %v", what, name, err, kind)
		case err != nil:
			failed++
		}
	}
	if got, err := s.all(); err == nil && !maps.Equal(got, want) || err != nil && !errors.Is(err, kind) {
		t.Fatalf("%s: all: %d refs, %v", what, len(got), err)
	}
	return failed
}

// TestPackedRefsCutShort: a packed-refs cut off anywhere, before it is opened or
// while it is open, is corrupt, and never one with fewer refs.
func TestPackedRefsCutShort(t *testing.T) {
	s, want := packedStore(t)
	whole, err := os.ReadFile(s.PackedPath())
	if err != nil {
		t.Fatal(err)
	}
	for n := len(whole) - 1; n > 0; {
		if n = max(n-1-n%97, 0); whole[n] != '\n' && n%3 == 0 {
			n = bytes.LastIndexByte(whole[:n], '\n') + 1 // whole lines
		}
		if err := os.Truncate(s.PackedPath(), int64(n)); err != nil {
			t.Fatal(err)
		}
		if refs, err := (&Store{Dir: s.Dir}).All(); !errors.Is(err, gitfmt.ErrCorrupt) {
			t.Fatalf("cut at %d of %d: %d refs, %v", n, len(whole), len(refs), err)
		}
		if allowed(t, fmt.Sprint("cut at ", n), s.cache.refs, want, gitfmt.ErrCorrupt) == 0 {
			t.Fatalf("cut at %d: every ref is still told", n)
		}
	}
	if err := s.Update(map[string]gitfmt.Hash{TaskPrefix + "t/3": {9}}); !errors.Is(err, gitfmt.ErrCorrupt) {
		t.Errorf("an update over what is cut short: %v", err)
	}
	_, lines, _ := bytes.Cut(whole, []byte("\n"))
	lines = append([]byte(packedHeader+"\n"), lines[:bytes.LastIndexByte(lines[:5000], '\n')-1]...) // as by git, in the middle of a name
	if err := os.WriteFile(s.PackedPath(), lines, 0o600); err != nil {
		t.Fatal(err)
	}
	if refs, err := (&Store{Dir: s.Dir}).All(); !errors.Is(err, gitfmt.ErrCorrupt) {
		t.Errorf("git's, cut in a name: %d refs, %v", len(refs), err)
	}
}

// TestPackedRefsRot: a byte that changes in the file while it is open is an error
// of the refs near it, at most, and so it is for who opens it then.
func TestPackedRefsRot(t *testing.T) {
	s, want := packedStore(t)
	whole, err := os.ReadFile(s.PackedPath())
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(s.PackedPath(), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	body := bytes.IndexByte(whole, '\n') + 1
	for i := body; i < len(whole); i += 131 {
		if _, err := f.WriteAt([]byte{whole[i] ^ 1}, int64(i)); err != nil {
			t.Fatal(err)
		}
		if failed := allowed(t, fmt.Sprint("rot at ", i), s.cache.refs, want, gitfmt.ErrCorrupt); failed == 0 || failed > 2*packedBlockBytes/50 {
			t.Fatalf("rot at %d: %d refs of %d are errors", i, failed, len(want))
		}
		if refs, err := (&Store{Dir: s.Dir}).All(); !errors.Is(err, gitfmt.ErrCorrupt) {
			t.Fatalf("rot at %d, opened then: %d refs, %v", i, len(refs), err)
		}
		if _, err := f.WriteAt(whole[i:i+1], int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if failed := allowed(t, "healed", s.cache.refs, want, nil); failed != 0 {
		t.Errorf("healed: %d refs are errors", failed)
	}
}

// failingSource is a file that cannot be read any more.
type failingSource struct{ refSource }

func (failingSource) ReadAt([]byte, int64) (int, error) { return 0, unix.EIO }

// TestPackedRefsUnreadable: a disk that fails to give a ref is told as that, by
// every operation, and changes nothing. When it can be read again, all is there.
func TestPackedRefsUnreadable(t *testing.T) {
	s, want := packedStore(t)
	before, err := os.ReadFile(s.PackedPath())
	if err != nil {
		t.Fatal(err)
	}
	fail := func() {
		t.Helper()
		if _, err := s.Look(); err != nil {
			t.Fatal(err)
		}
		p := s.cache.refs.packed
		p.src = failingSource{p.src}
	}
	fail()
	if n := allowed(t, "unreadable", s.cache.refs, want, unix.EIO); n != len(want)-2 {
		t.Errorf("%d refs of %d are errors", n, len(want))
	}
	for what, do := range map[string]func() error{
		"read":   func() error { _, err := s.All(); return err },
		"look":   func() error { return s.Update(map[string]gitfmt.Hash{TaskPrefix + "t/5": {5}}) },
		"repack": func() error { return s.Update(map[string]gitfmt.Hash{WorldPrefix + "w": {}}) },
	} {
		fail()
		if err := do(); !errors.Is(err, unix.EIO) || errors.Is(err, gitfmt.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for who, s := range map[string]*Store{"this process": s, "a new one": {Dir: s.Dir}} {
		if got, err := s.All(); err != nil || !maps.Equal(got, want) {
			t.Errorf("afterwards, %s: %d refs, %v, want %d", who, len(got), err, len(want))
		}
	}
	if after, err := os.ReadFile(s.PackedPath()); err != nil || !bytes.Equal(before, after) {
		t.Errorf("packed-refs has changed: %v", err)
	}
	if err := s.Update(map[string]gitfmt.Hash{TaskPrefix + "t/6": {}}); err != nil {
		t.Fatal(err)
	}
	if n := len(s.gitRefs(t)); n != len(want)-1 {
		t.Errorf("git reads %d refs, want %d", n, len(want)-1)
	}
}

// TestPackedRefsByGit: what git does to packed-refs while it is open counts, and
// what git wrote is read without what only we write there.
func TestPackedRefsByGit(t *testing.T) {
	s, want := packedStore(t)
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"--git-dir=" + s.Dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	same := func(what string) {
		t.Helper()
		s.cache.checked = false // another operation
		for who, s := range map[string]*Store{"this process": s, "a new one": {Dir: s.Dir}} {
			got, err := s.All()
			if err != nil || !maps.Equal(got, want) {
				t.Fatalf("%s, %s: %d refs, %v, want %d", what, who, len(got), err, len(want))
			}
			if got, err := s.Look(); err != nil || allowed(t, what, got, want, nil) != 0 {
				t.Fatalf("%s, %s: %v", what, who, err)
			}
			if h, err := s.cache.refs.Get(TaskPrefix + "t/17"); err != nil || h != want[TaskPrefix+"t/17"] {
				t.Fatalf("%s, %s: %v, %v", what, who, h, err)
			}
		}
	}
	same("ours")
	delete(want, TaskPrefix+"t/17")
	git("update-ref", "-d", TaskPrefix+"t/17")
	if data, err := os.ReadFile(s.PackedPath()); err != nil || strings.Contains(string(data), PackedSum) || strings.Contains(string(data), "t/17\n") {
		t.Fatalf("git did not write packed-refs anew: %v", err)
	}
	same("removed by git")
	want[TaskPrefix+"t/x"] = refID(5)
	if err := s.Update(map[string]gitfmt.Hash{TaskPrefix + "t/x": refID(5)}); err != nil {
		t.Fatal(err)
	}
	git("pack-refs", "--all", "--no-prune")
	same("packed by git")
}

// FuzzPackedRefs: whatever stands in packed-refs is an error, or what a plain
// reading of its lines gives, ref by ref and as a whole, and so it is written.
func FuzzPackedRefs(f *testing.F) {
	id := func(c string) string { return strings.Repeat(c, 40) }
	f.Add([]byte(packedHeader + "\n" + id("1") + " refs/anamnesis/t/1\n^" + id("2") + "\n" + id("3") + " refs/heads/latest\n"))
	f.Add([]byte(id("2") + " refs/anamnesis/t/2\n" + id("1") + " refs/anamnesis/t/1\n" + id("4") + " refs/anamnesis/t/1\n"))
	f.Add([]byte("#\n\n\n" + id("A") + " refs/x\n"))
	f.Add([]byte(packedHeader + PackedSum + "000000000000-00000000 \n" + id("1") + " refs/anamnesis/t/1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "packed-refs")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := readSet(path)
		if err != nil {
			if !errors.Is(err, gitfmt.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		defer s.close()
		want := make(map[string]gitfmt.Hash)
		for line := range strings.SplitSeq(strings.TrimSuffix(string(data), "\n"), "\n") {
			if line == "" || line[0] == '#' || line[0] == '^' {
				continue
			}
			id, name, _ := strings.Cut(line, " ")
			h, ok := gitfmt.ParseHash(id)
			if !ok || !strings.HasPrefix(name, "refs/") {
				t.Fatalf("%q was read", line)
			}
			if want[name] = h; h.IsZero() {
				delete(want, name)
			}
		}
		again, err := s.pack(path)
		if err != nil {
			t.Fatal(err)
		}
		defer again.close()
		read, err := readSet(path)
		if err != nil {
			t.Fatal(err)
		}
		defer read.close()
		for i, s := range []*Set{s, again, read} {
			if allowed(t, fmt.Sprint(i), s, want, nil) != 0 {
				t.Fatalf("%d: an error", i)
			}
		}
	})
}

func TestRefsPackedWhenMany(t *testing.T) {
	for _, c := range []struct{ packed, first int }{{0, 32}, {1000, 32}, {1024, 32}, {1025, 33}, {10_000, 100}, {1_000_000, 1000}} {
		s := Set{packed: &packedRefs{n: c.packed}}
		if s.due(c.first-1) || !s.due(c.first) {
			t.Errorf("%d packed refs: due after %d updates %v, after %d %v; want it from %d on", c.packed, c.first-1, s.due(c.first-1), c.first, s.due(c.first), c.first)
		}
	}
}
