package worldstate

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/worldtest"
)

// TestHostileNames: every name comes back, and git's own checks are content.
func TestHostileNames(t *testing.T) {
	b := newBench(t, nil)
	names := []string{
		"git~1", "GIT~1", ".GIT", ".git ", ".git.", ".Gitmodules", ".gitmodules", "gitmod~1", "GI7EBA~1", ".gitattributes", ".g\u200cit",
		`back\slash`, ".git::$INDEX_ALLOCATION", "new\nline", "tab\t", `quo"te`, "\xff\xfe", "aux", "con.txt", "CON", "a b", "-x",
		tree.ManifestName, tree.StoredPrefix + "x", "%", "é", "ÿ", ".gitignore~", "mailmap", ".mailmap",
	}
	for _, n := range names {
		b.must(os.WriteFile(b.path(n), []byte("[bad "+n), 0o644))
		if n != ".gitattributes" && n != tree.ManifestName {
			b.must(os.MkdirAll(b.path("d/"+n), 0o755))
			b.must(os.WriteFile(b.path("d/"+n+"/"+n), []byte(n), 0o600))
		}
		b.must(os.MkdirAll(b.path("e/"+n), 0o700))
		b.must(os.MkdirAll(b.path("l"), 0o700))
		b.must(os.Symlink("a/b", b.path("l/"+n)))
	}
	b.must(os.WriteFile(b.path("d/.gitattributes"), []byte(strings.Repeat("x", 5000)), 0o644))
	before := look(t, b.dir)
	first := b.save()
	b.fsck()
	worldtest.Git(t, b.dir, "--git-dir="+b.store, "log", "-p", "--all")
	b.must(os.RemoveAll(b.path("d")))
	b.must(os.RemoveAll(b.path("e")))
	for _, n := range names {
		b.must(os.Remove(b.path(n)))
	}
	b.write("one", "1")
	b.jump(first.ID)
	sameWorld(t, look(t, b.dir), before, "hostile names")
}

// TestSpecialFiles: no hang, listed, left alone; the snapshot is complete.
func TestSpecialFiles(t *testing.T) {
	b := newBench(t, nil)
	b.write("a", "1")
	first := b.save()
	b.must(unix.Mkfifo(b.path("fifo"), 0o600))
	l, err := net.Listen("unix", b.path("sock"))
	b.must(err)
	defer l.Close()
	b.write("a", "2")
	s := b.save()
	if !s.Complete || fmt.Sprint(s.Skipped) != fmt.Sprint([]Skip{{Path: "fifo", Reason: tree.ReasonFIFO}, {Path: "sock", Reason: tree.ReasonSocket}}) {
		t.Fatalf("%+v", s)
	}
	res := b.jump(first.ID)
	if res.Tree != first.Tree || !res.Exact {
		t.Errorf("the tree is not the target's: %+v", res)
	}
	for _, p := range []string{"fifo", "sock"} {
		if _, err := os.Lstat(b.path(p)); err != nil {
			t.Errorf("%s is gone", p)
		}
	}
}

// TestUnreadable: the snapshot is partial, says what is missing, and nothing
// is deleted at or beneath the place, then or later.
func TestUnreadable(t *testing.T) {
	b := newBench(t, nil)
	b.write("a", "1")
	b.write("locked/in", "x")
	b.write("secret", "s")
	b.w.track.Before = func(op, path string) error {
		if op == "readdir" && path == "locked" || op == "read" && path == "secret" {
			return fs.ErrPermission
		}
		return nil
	}
	partial := b.save()
	if partial.Complete || len(partial.Skipped) != 2 || partial.Skipped[0].Path != "locked" || !strings.Contains(partial.Skipped[1].Reason, "permission") {
		t.Fatalf("%+v", partial)
	}
	b.w.track.Before = nil
	b.write("locked/person", "made by hand")
	b.write("a", "2")
	res := b.jump(partial.ID)
	for _, p := range []string{"locked/in", "locked/person", "secret"} {
		if _, err := os.Stat(b.path(p)); err != nil {
			t.Errorf("%s was deleted (kept %v)", p, res.Kept)
		}
	}
	if data, _ := os.ReadFile(b.path("a")); string(data) != "1" {
		t.Errorf("a is %q", data)
	}
}

// TestChangesWhileRead: a file that never holds still is listed, one that
// does at last is held.
func TestChangesWhileRead(t *testing.T) {
	b := newBench(t, nil)
	b.write("f", "1")
	n := 0
	b.w.track.Before = func(op, path string) error {
		if op == "reread" && path == "f" {
			if n++; n < 3 {
				return objects.ErrContentChanged
			}
		}
		return nil
	}
	if s := b.save(); !s.Complete || s.Files != 1 || n != 3 {
		t.Fatalf("%+v after %d tries", s, n)
	}
	b.write("f", "2")
	n = -100
	if s := b.save(); s.Complete || fmt.Sprint(s.Skipped) != fmt.Sprint([]Skip{{Path: "f", Reason: objects.ErrContentChanged.Error()}}) {
		t.Fatalf("%+v", s)
	}
}

// TestSameSizeSameTime: a rewrite that keeps size and mtime is noticed, and so
// is one in the very tick of the save.
func TestSameSizeSameTime(t *testing.T) {
	b := newBench(t, nil)
	old := time.Now().Add(-time.Hour)
	b.write("f", "aaaa")
	b.must(os.Chtimes(b.path("f"), old, old))
	b.save()
	b.write("f", "bbbb")
	b.must(os.Chtimes(b.path("f"), old, old))
	if s := b.save(); s.Changed != 1 {
		t.Error("a rewrite with a kept mtime was missed")
	}
	for i := range 50 {
		b.write("f", fmt.Sprintf("%04d", i))
		if s := b.save(); s.Changed != 1 {
			t.Fatalf("rewrite %d in the tick of the save was missed", i)
		}
	}
}

func TestRacy(t *testing.T) {
	now := time.Unix(1_000_000, 500_000_000)
	for _, c := range []struct {
		age  time.Duration
		want bool
	}{{0, true}, {50 * time.Millisecond, true}, {101 * time.Millisecond, false}, {-time.Hour, true}, {500 * time.Millisecond, true}, {2500 * time.Millisecond, false}} {
		at := now.Add(-c.age).UnixNano() // 500 ms before is a whole second: a coarse clock
		if got := fsys.Racy(fsys.Stamp{Mtime: at, Ctime: at}, now); got != c.want {
			t.Errorf("age %v: racy %v", c.age, got)
		}
	}
}

// TestLargeFile streams, in and out.
func TestLargeFile(t *testing.T) {
	b := newBench(t, nil)
	data := make([]byte, objects.WholeFileBytes+12345)
	for i := range data {
		data[i] = byte(i*i>>7) ^ byte(i)
	}
	b.must(os.WriteFile(b.path("big"), data, 0o644))
	want := look(t, b.dir)
	first := b.save()
	b.must(os.Remove(b.path("big")))
	b.write("other", "x")
	b.jump(first.ID)
	sameWorld(t, look(t, b.dir), want, "a large file")
	b.fsck()
}
