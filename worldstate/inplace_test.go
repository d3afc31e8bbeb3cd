package worldstate

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
)

func inode(t testing.TB, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// TestInPlace: which files keep their inode over a restore, and which are
// replaced, so that somebody else's hold on the old bytes stays good.
func TestInPlace(t *testing.T) {
	b := newBench(t, nil)
	for _, c := range []struct {
		name   string
		mode   os.FileMode
		size   int
		linked bool
		keeps  bool
	}{
		{"plain", 0o644, 100, false, true},
		{"private", 0o600, 100, false, true},
		{"script", 0o755, 100, false, false},
		{"linked", 0o644, 100, true, false},
		{"large", 0o644, restore.InPlaceBytes + 1, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := b.path(c.name)
			b.must(os.WriteFile(path, bytes.Repeat([]byte("1"), c.size), c.mode))
			first := b.save().ID
			b.must(os.WriteFile(path, bytes.Repeat([]byte("22"), c.size), c.mode))
			outside := t.TempDir() + "/outside"
			if c.linked {
				b.must(os.Link(path, outside))
			}
			b.save()
			before := inode(t, path)
			reader, err := os.Open(path)
			b.must(err)
			defer reader.Close()
			if res := b.jump(first); !res.Exact {
				t.Fatalf("%+v", res)
			}
			if kept := inode(t, path) == before; kept != c.keeps {
				t.Errorf("inode kept: %v, want %v", kept, c.keeps)
			}
			if c.linked {
				if data, _ := os.ReadFile(outside); len(data) != 2*c.size {
					t.Error("the other hard link changed")
				}
			}
			if !c.keeps {
				info, err := reader.Stat()
				b.must(err)
				if info.Size() != int64(2*c.size) {
					t.Error("who had the old file open sees other bytes")
				}
			}
		})
	}
}

// TestTextBusy: the file of a running program cannot be written over, even
// where its mode no longer says that it is one.
func TestTextBusy(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, nil)
	b.write("program", "not yet built")
	first := b.save().ID
	b.write("program", string(program))
	b.must(os.Chmod(b.path("program"), 0o755))
	cmd := exec.Command(b.path("program"), "600")
	b.must(cmd.Start())
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	b.must(os.Chmod(b.path("program"), 0o644))
	b.save()
	if res := b.jump(first); !res.Exact {
		t.Fatalf("%+v", res)
	}
}

// TestEditAfterKill: what a user makes of a half-written file before the
// restore is finished is theirs. What only looks half-written holds no byte
// that is not in the store, and is finished.
func TestEditAfterKill(t *testing.T) {
	old, now := strings.Repeat("old line\n", 200), strings.Repeat("new line, longer\n", 200)
	for _, c := range []struct {
		name, content string
		theirs        bool
	}{
		{"untouched", "", false},
		{"a mixture", now[:512] + old[512:], false},
		{"other bytes", "by hand", true},
		{"one byte", old[:700] + "!" + old[701:], true},
		{"one more byte", now + "!", true},
		{"emptied", "\x00", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil)
			b.write("f", old)
			b.write("g", old)
			first := b.save().ID
			for n := 0; ; n++ { // until f is written and not yet cut
				b.write("f", now)
				b.write("g", now)
				b.save()
				if !b.killed("restore", first, n) {
					t.Fatal("no kill fell where f is half-written")
				}
				half, err := os.ReadFile(b.path("f"))
				b.must(err)
				if s := string(half); s != now && s != old {
					break
				}
				_, err = b.w.Recover(context.Background())
				b.must(err)
			}
			switch c.content {
			case "":
			case "\x00":
				b.must(os.Truncate(b.path("f"), 0))
			default:
				b.write("f", c.content)
			}
			left, err := os.ReadFile(b.path("f"))
			b.must(err)
			r, err := b.w.Recover(context.Background())
			if err != nil || r == nil || !r.Finished {
				t.Fatalf("%+v %v", r, err)
			}
			data, err := os.ReadFile(b.path("f"))
			b.must(err)
			if c.theirs && (!bytes.Equal(data, left) || fmt.Sprint(r.Kept) != fmt.Sprint([]Skip{{Path: "f", Reason: gitfmt.KeepRaced}})) {
				t.Errorf("the edit became %.20q, kept %v", data, r.Kept)
			}
			if !c.theirs && (string(data) != old || len(r.Kept) != 0) {
				t.Errorf("not finished: %.20q, kept %v", data, r.Kept)
			}
			if data, _ := os.ReadFile(b.path("g")); string(data) != old {
				t.Error("the other file is not restored")
			}
		})
	}
}

// TestHalfWrite: whatever order pages of a file reach the disk in, what is
// left is known as a half write; a byte of neither end is not.
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
			t.Fatal("a half write is not known")
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
