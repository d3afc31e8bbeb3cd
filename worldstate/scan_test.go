package worldstate

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/worldtest"
)

// TestHostileNames: every name comes back, and git's own checks are content.
func TestHostileNames(t *testing.T) {
	b := newBench(t, nil)
	names := []string{
		"git~1", "GIT~1", ".GIT", ".git ", ".git.", ".Gitmodules", ".gitmodules", "gitmod~1", "GI7EBA~1", ".gitattributes", ".g\u200cit",
		`back\slash`, ".git::$INDEX_ALLOCATION", "new\nline", "tab\t", `quo"te`, "\xff\xfe", "aux", "con.txt",
		"CON", "a b", "-x",
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
	if !s.Complete ||
		fmt.Sprint(s.Skipped) != fmt.Sprint(
			[]Skip{{Path: "fifo", Reason: tree.ReasonFIFO}, {Path: "sock", Reason: tree.ReasonSocket}}) {
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
	if partial.Complete || len(partial.Skipped) != 2 || partial.Skipped[0].Path != "locked" ||
		!strings.Contains(partial.Skipped[1].Reason, "permission") {
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
