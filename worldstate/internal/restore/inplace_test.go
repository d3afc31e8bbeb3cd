package restore_test

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/tree"
)

func inode(t testing.TB, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// TestInPlace: which files keep their inode over a restore, and which are replaced, so that a
// program that has the old file open still reads its bytes.
func TestInPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		mode   uint32
		size   int
		linked bool
		keeps  bool
	}{
		{"plain", 0o644, 100, false, true},
		{"private", 0o600, 100, false, true},
		{"script", 0o755, 100, false, false},
		{"linked", 0o644, 100, true, false},
		{"large", 0o644, restore.InPlaceBytes, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			path := s.path("f")
			now := strings.Repeat("22", c.size)
			s.write("f", now, os.FileMode(c.mode))
			if c.linked {
				s.must(os.Link(path, s.path("other")))
			}
			before := inode(t, path)
			reader, err := os.Open(path)
			s.must(err)
			defer reader.Close()
			x := s.run(restore.Action{Path: "f", Before: s.file(now, c.mode),
				After: s.file(strings.Repeat("1", c.size), c.mode)})
			if data, err := os.ReadFile(path); err != nil || string(data) != strings.Repeat("1", c.size) ||
				len(x.Kept) > 0 {
				t.Fatalf("%.10q, %v, kept %v", data, err, x.Kept)
			}
			if kept := inode(t, path) == before; kept != c.keeps {
				t.Errorf("inode kept: %t, want %t", kept, c.keeps)
			}
			if info, err := reader.Stat(); !c.keeps && (err != nil || info.Size() != int64(2*c.size)) {
				t.Errorf("a program that had the old file open sees other bytes: %v", err)
			}
		})
	}
}

// TestTextBusy: the file of a running program is replaced, even if its mode no longer says that it
// can be run.
func TestTextBusy(t *testing.T) {
	t.Parallel()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	s.write("program", string(program), 0o755)
	cmd := exec.Command(s.path("program"), "600")
	s.must(cmd.Start())
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	s.must(os.Chmod(s.path("program"), 0o644))
	s.run(
		restore.Action{Path: "program", Before: s.file(string(program), 0o644), After: s.file("not yet built", 0o644)})
	if data, err := os.ReadFile(s.path("program")); string(data) != "not yet built" {
		t.Errorf("%.20q, %v", data, err)
	}
}

// TestHalfWritten: a resumed restore completes a file whose bytes are of one end or the other. It
// keeps any other as a user's, and a fresh one keeps both.
func TestHalfWritten(t *testing.T) {
	t.Parallel()
	old, now := strings.Repeat("old line\n", 200), strings.Repeat("new line, longer\n", 200)
	for _, c := range []struct {
		name, content string
		theirs        bool
	}{
		{"not begun", now, false},
		{"done", old, false},
		{"a mixture", now[:512] + old[512:], false},
		{"not yet cut", old + now[len(old):], false},
		{"other bytes", "by hand", true},
		{"one byte", old[:700] + "!" + old[701:], true},
		{"one more byte", now + "!", true},
		{"emptied", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			a := restore.Action{Path: "f", Before: s.file(now, 0o644), After: s.file(old, 0o644)}
			for _, resumed := range []bool{false, true} {
				s.write("f", c.content, 0o644)
				x := s.executor(resumed, a)
				s.must(x.Run([]restore.Action{a}))
				theirs := c.theirs || !resumed && c.content != now && c.content != old
				want, kept := old, []gitfmt.Skip(nil)
				if theirs {
					want, kept = c.content, []gitfmt.Skip{{Path: "f", Reason: gitfmt.KeepRaced}}
				}
				if data, err := os.ReadFile(s.path("f")); err != nil || string(data) != want ||
					!slices.Equal(x.Kept, kept) {
					t.Errorf("resumed %t: %.20q, %v, kept %v", resumed, data, err, x.Kept)
				}
			}
		})
	}
}

// TestUndo: a restore that ended at any action is rolled back.
func TestUndo(t *testing.T) {
	t.Parallel()
	for n := range 8 {
		s := newSite(t)
		s.write("changed", "now\n", 0o644)
		s.write("removed", "now\n", 0o600)
		s.must(os.Mkdir(s.path("dir"), 0o700))
		s.write("dir/in", "now\n", 0o644)
		before := map[string]string{}
		for _, f := range []string{"changed", "removed", "dir/in"} {
			before[f] = s.text(f)
		}
		dir := tree.State{Kind: tree.KindDir, Perm: 0o700}
		actions := []restore.Action{
			{Path: "changed", Before: s.file("now\n", 0o644), After: s.file("was\n", 0o755)},
			{Path: "dir", Before: dir},
			{Path: "dir/in", Before: s.file("now\n", 0o644)},
			{Path: "made", After: dir},
			{Path: "made/in", After: s.file("was\n", 0o644)},
			{Path: "removed", Before: s.file("now\n", 0o600)},
		}
		j := &restore.Journal{Nonce: fsys.NewNonce(), Actions: actions}
		env, left := restore.Effects{Objects: s.store, Hook: func(string) {}}, n
		env.Before = func(string, string) error {
			if left--; left < 0 {
				return syscall.EIO
			}
			return nil
		}
		err := restore.New(env, s.root, j).Run(actions)
		env.Before = nil
		x, uerr := restore.Undo(env, s.root, j)
		s.must(uerr)
		if err == nil {
			t.Errorf("no error after %d operations", n)
		}
		for f, want := range before {
			if got := s.text(f); got != want {
				t.Errorf("after %d operations: %s is %q, was %q", n, f, got, want)
			}
		}
		if _, err := os.Lstat(s.path("made")); err == nil || len(x.Kept) > 0 {
			t.Errorf("after %d operations: made is there, or kept %v", n, x.Kept)
		}
	}
}

// TestHalfWrite: in whatever order the pages of a file reach the disk, what is left is recognised as
// a half write; a byte of neither end is not.
func TestHalfWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.SliceOfN(rapid.Byte(), 0, 60)
		one, other := content.Draw(t, "one"), content.Draw(t, "other")
		n := rapid.IntRange(min(len(one), len(other)), max(len(one), len(other))).Draw(t, "length")
		at := func(end []byte, i int) byte { return append(bytes.Clone(end), make([]byte, 60)...)[i] }
		data := make([]byte, n)
		for i := range data {
			data[i] = at([][]byte{one, other}[rapid.IntRange(0, 1).Draw(t, "from")], i)
		}
		if !restore.HalfWrite(data, one, other) || !restore.HalfWrite(data, other, one) {
			t.Fatal("a half write is not recognised")
		}
		if len(other) <= len(one) && restore.HalfWrite(append(bytes.Clone(one), 0), one, other) {
			t.Fatal("longer than both ends, and passes")
		}
		if n == 0 {
			return
		}
		i := rapid.IntRange(0, n-1).Draw(t, "changed")
		data[i]++
		if data[i] != at(one, i) && data[i] != at(other, i) && restore.HalfWrite(data, one, other) {
			t.Fatalf("a foreign byte at %d passes", i)
		}
	})
}
