//go:build unix

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/worldtest"
)

// TestRow05Names: names that git forbids, reads for itself, or that only
// differ in case; whatever stood there as file, link or directory.
func TestRow05Names(t *testing.T) {
	t.Parallel()
	names := []string{
		"line\nfeed", "tab\t", `quo"te`, `back\slash`, "\xff\xfe\x80", "aux", "con.txt", "git~1", "GIT~2", ".git ", ".Git", ".gitmodules", ".gitattributes",
		".anamnesis-manifest", ".anamnesis-name-x", "-rf", " ", "é", "e\u0301", "README", "readme", "ReadMe", "\x1b[31m", "%", "*", "..."}
	eachFace(t, func(w *rowWorld) {
		for i, n := range names {
			w.must(os.WriteFile(w.path(n), []byte("[broken \""+n), 0o644))
			w.must(os.MkdirAll(w.path("d/"+n+"/"+n), 0o755))
			if n != ".gitattributes" && n != ".gitmodules" {
				w.must(os.WriteFile(w.path("d/"+n+"/f"), []byte(n), 0o644))
			}
			w.must(os.MkdirAll(w.path("l"), 0o755))
			w.must(os.Symlink("../"+names[(i+1)%len(names)], w.path("l/"+n)))
		}
		first := w.saved()
		want := w.look().Whats()
		w.whole()
		git(w, w.top, "--git-dir="+w.store, "log", "-p", "--all", "--stat")
		for i, n := range names { // every path becomes something else
			w.remove(n, "d/"+n, "l/"+n)
			switch i % 3 {
			case 0:
				w.must(os.Mkdir(w.path(n), 0o755))
				w.must(os.WriteFile(w.path(n+"/in"), []byte("2"), 0o644))
				w.must(os.WriteFile(w.path("d/"+n), []byte("2"), 0o644))
			case 1:
				w.must(os.Symlink("elsewhere", w.path(n)))
				w.must(os.Symlink("/", w.path("d/"+n)))
				w.must(os.Mkdir(w.path("l/"+n), 0o700))
			}
		}
		second := w.saved()
		then := w.look().Whats()
		w.back(first)
		worldtest.RequireEqual(w, w.look().Whats(), want, "back")
		w.back(second)
		worldtest.RequireEqual(w, w.look().Whats(), then, "forward")
		w.must(os.Rename(w.path("d"), w.path("D")))
		w.must(os.Rename(w.path("D"), w.path("dD")))
		w.must(os.Rename(w.path("dD"), w.path("D")))
		w.back(second)
		worldtest.RequireEqual(w, w.look().Whats(), then, "after a renaming in case only")
		w.whole()
	})
}

// TestRow06Special: a link is stored and never its target, hard links and
// sparse files are bytes, and what has no bytes is listed and left alone.
func TestRow06Special(t *testing.T) {
	t.Parallel()
	eachFace(t, func(w *rowWorld) {
		secret := w.top + "/secret"
		w.must(os.WriteFile(secret, []byte("do not store me anywhere"), 0o600))
		w.must(os.Symlink(secret, w.path("link")))
		w.must(os.Symlink("link/../..", w.path("up")))
		w.write("one", "two names")
		w.must(os.Link(w.path("one"), w.path("two")))
		sparse, err := os.Create(w.path("sparse"))
		w.must(err)
		_, err = sparse.WriteAt([]byte("end"), 6<<20)
		w.must(err)
		w.must(sparse.Close())
		w.must(unix.Mkfifo(w.path("fifo"), 0o600))
		sock, err := net.Listen("unix", w.path("sock"))
		w.must(err)
		defer sock.Close()
		listed := "fifo=fifo sock=socket"
		if os.Geteuid() == 0 {
			w.must(unix.Mknod(w.path("device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
			listed = "device=device " + listed
		} else {
			need(w, false, "root, to make a device")
		}
		first := w.saved()
		var got []string
		for _, s := range first.Skipped {
			got = append(got, s.Path+"="+s.Reason)
		}
		if strings.Join(got, " ") != listed || !first.Complete {
			w.Errorf("skipped %q (complete %v), want %q", got, first.Complete, listed)
		}
		want := w.look().Whats()
		if out := git(w, w.top, "--git-dir="+w.store, "grep", "-c", "-e", "two names", string(first.ID)); !strings.Contains(out, ":one:1") {
			w.Errorf("grep finds %q", out)
		}
		cmd := exec.Command("git", "--git-dir="+w.store, "grep", "do not store me", string(first.ID))
		if out, _ := cmd.Output(); len(out) > 0 {
			w.Errorf("the target of a link is in the store: %s", out)
		}
		w.remove("link", "up", "one", "two", "sparse")
		w.write("link/is/now", "a directory")
		w.back(first)
		worldtest.RequireEqual(w, w.look().Whats(), want, "back")
		if data, err := os.ReadFile(secret); err != nil || string(data) != "do not store me anywhere" {
			w.Errorf("the secret is %q %v", data, err)
		}
		// A hard link outside the world keeps what it had.
		w.must(os.Link(w.path("one"), w.top+"/outside"))
		w.write("one", "changed through both")
		w.back(first)
		if data, _ := os.ReadFile(w.top + "/outside"); string(data) != "changed through both" {
			w.Errorf("a restore wrote through a hard link: %q", data)
		}
		w.whole()
	})
}

// stranger is a user who owns nothing.
const stranger = 65534

// strangersWorld is a world that another user owns, with the program run as
// that user: root can read everything.
func strangersWorld(t *testing.T) *rowWorld {
	t.Helper()
	need(t, os.Geteuid() == 0, "root, to be somebody else")
	top, err := os.MkdirTemp("", "anamnesis-row-")
	if err != nil {
		t.Fatal(err)
	}
	w := &rowWorld{T: t, top: top, dir: top + "/world", store: top + "/store"}
	t.Cleanup(func() { os.RemoveAll(top) })
	w.must(os.Mkdir(w.dir, 0o755))
	w.must(os.Chown(top, stranger, stranger))
	w.must(os.Chown(w.dir, stranger, stranger))
	w.face = programFace{t: t, dir: w.dir, store: w.store, uid: stranger}
	return w
}

// TestRow06Unreadable: what cannot be read is listed, the snapshot is partial
// and says so, and nothing is deleted at or beneath it, then or later.
func TestRow06Unreadable(t *testing.T) {
	t.Parallel()
	w := strangersWorld(t)
	w.write("a", "1")
	w.write("locked/in", "root's")
	w.write("secret", "root's")
	w.must(os.Chmod(w.path("locked"), 0o700))
	w.must(os.Chmod(w.path("secret"), 0o600))
	w.must(os.Chown(w.path("a"), stranger, stranger))
	first := w.saved()
	if first.Complete || len(first.Skipped) != 2 || first.Skipped[0].Path != "locked" ||
		first.Skipped[1].Path != "secret" || !strings.Contains(first.Skipped[1].Reason, "permission denied") {
		t.Errorf("%+v", first)
	}
	w.must(os.WriteFile(w.path("a"), []byte("2"), 0o644))
	for _, p := range []string{"locked", "secret"} {
		w.must(os.Chown(w.path(p), stranger, stranger))
	}
	w.write("locked/by a user", "mine")
	second := w.saved() // now it can read them, and they are its own to keep or lose
	if !second.Complete {
		t.Errorf("%+v", second.Skipped)
	}
	w.back(first)
	w.holds("a", "1")
	w.holds("locked/in", "root's")
	w.holds("locked/by a user", "mine")
	w.holds("secret", "root's")
	w.must(os.Chown(w.path("locked"), 0, 0))
	w.remove("secret")
	w.back(second)
	w.holds("a", "2")
	w.holds("locked/in", "root's")
	w.holds("secret", "root's")
	if info, err := os.Stat(w.path("locked")); err != nil || info.Mode().Perm() != 0o700 ||
		info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("what the program cannot read was changed: %v %v", info.Mode(), err)
	}
}

// TestRow07Noticed: a rewrite that keeps size and time, one in the very tick
// of the snapshot, and one by a tool that sets times back.
func TestRow07Noticed(t *testing.T) {
	t.Parallel()
	heavy(t)
	eachFace(t, func(w *rowWorld) {
		old := time.Now().Add(-time.Hour).Truncate(time.Second)
		w.write("f", "aaaa")
		w.write("same", "aaaa")
		w.must(os.Chtimes(w.path("f"), old, old))
		first := w.saved()
		w.must(os.WriteFile(w.top+"/other", []byte("bbbb"), 0o644))
		w.must(os.Chtimes(w.top+"/other", old, old))
		if out, err := exec.Command("cp", "-p", w.top+"/other", w.path("f")).CombinedOutput(); err != nil {
			w.Fatalf("cp: %v %s", err, out)
		}
		if s := w.saved(); s.Changed != 1 {
			w.Errorf("cp -p of another file: %d changed", s.Changed)
		}
		w.must(os.WriteFile(w.path("f"), []byte("cccc"), 0o644))
		w.must(os.Chtimes(w.path("f"), old, old))
		if s := w.saved(); s.Changed != 1 {
			w.Errorf("a rewrite in place with the old time: %d changed", s.Changed)
		}
		w.must(os.Rename(w.top+"/other", w.path("f")))
		if s := w.saved(); s.Changed != 1 {
			w.Errorf("a rename over it: %d changed", s.Changed)
		}
		w.write("../from/f", "dddd")
		w.must(os.Chtimes(w.top+"/from/f", old, old))
		pack := exec.Command("sh", "-c", "tar -C from -cf - f | tar -C world -xf -")
		pack.Dir = w.top
		if out, err := pack.CombinedOutput(); err != nil {
			w.Fatalf("tar: %v %s", err, out)
		}
		if info, err := os.Stat(w.path("f")); err != nil || !info.ModTime().Equal(old) {
			w.Fatalf("tar set the time to %v, %v", info.ModTime(), err)
		}
		if s := w.saved(); s.Changed != 1 {
			w.Errorf("unpacked by tar: %d changed", s.Changed)
		}
		rounds := 30
		for i := range rounds {
			w.must(os.WriteFile(w.path("same"), fmt.Appendf(nil, "%04d", i), 0o644))
			if s, err := w.save(); err != nil || s.Changed != 1 {
				w.Fatalf("rewrite %d in the tick of the save: %d changed, %v", i, s.Changed, err)
			}
		}
		w.back(first)
		w.holds("f", "aaaa")
		w.holds("same", "aaaa")
	})
}

// oneMoment reports whether a file that is filled from its beginning with one
// byte after the other can have held this at one moment: the latest byte up to
// some place, and the one before it from there on.
func oneMoment(content string) bool {
	rest := strings.TrimLeft(content, content[:1])
	return rest == "" || strings.Trim(rest, rest[:1]) == "" && content[0] == rest[0]+1
}

// TestRow07WhileRead: a file that never holds still is either held as it stood
// at one moment, or listed in a snapshot that says it is not complete.
func TestRow07WhileRead(t *testing.T) {
	t.Parallel()
	heavy(t)
	for _, size := range []int64{768 << 10, 8 << 20} { // read at once, and streamed
		t.Run(fmt.Sprint(size>>10, " KiB"), func(t *testing.T) { neverStill(t, size) })
	}
}

// mostSaves is how often a busy file is saved at most until it was caught.
const mostSaves = 100

func neverStill(t *testing.T, size int64) {
	eachFace(t, func(w *rowWorld) {
		f, err := os.Create(w.path("busy"))
		w.must(err)
		defer f.Close()
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		fill := func(b byte) {
			block := make([]byte, 64<<10)
			for i := range block {
				block[i] = b
			}
			for off := int64(0); off < size; off += int64(len(block)) {
				if _, err := f.WriteAt(block, off); err != nil {
					w.Error(err)
				}
			}
		}
		fill(0)
		go func() {
			defer close(done)
			for b := byte(1); ctx.Err() == nil; b++ {
				fill(b)
			}
		}()
		defer func() { stop(); <-done }()
		listed := 0
		for n := 0; n < 6 || listed == 0 && n < mostSaves; n++ { // who writes may not get a processor during one
			s, err := w.save()
			w.must(err)
			if len(s.Skipped) > 0 {
				listed++
				if s.Complete || s.Skipped[0].Path != "busy" || s.Skipped[0].Reason != "changed while being read" {
					w.Errorf("%+v", s)
				}
				continue
			}
			out := git(w, w.top, "--git-dir="+w.store, "cat-file", "-p", string(s.ID)+":busy")
			if int64(len(out)) != size || !oneMoment(out) {
				w.Errorf("the snapshot claims to be complete and holds %d bytes that never stood there at one moment",
					len(out))
			}
		}
		if listed == 0 {
			w.Error("the file was never caught changing: nothing was tested")
		}
		stop()
		<-done
		if s := w.saved(); !s.Complete {
			w.Errorf("it holds still now: %+v", s)
		}
		w.whole()
	})
}
