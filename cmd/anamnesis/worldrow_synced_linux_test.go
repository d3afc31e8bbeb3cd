package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// about returns the path that a call removes or syncs; empty for another call.
func (c call) about(t testing.TB, tid int) string {
	t.Helper()
	switch c.number {
	case unix.SYS_UNLINKAT:
		name := make([]byte, unix.PathMax)
		n, err := syscall.PtracePeekData(tid, uintptr(c.args[1]), name)
		end := bytes.IndexByte(name[:n], 0)
		if end < 0 {
			t.Fatalf("what call %v removes: %v", c, err)
		}
		if filepath.IsAbs(string(name[:end])) {
			return string(name[:end])
		}
		return filepath.Join(fileOf(t, tid, c.args[0]), string(name[:end]))
	case unix.SYS_FSYNC:
		return fileOf(t, tid, c.args[0])
	}
	return ""
}

func fileOf(t testing.TB, tid int, fd uint64) string {
	t.Helper()
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, int32(fd)))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRow12MultiIndexGoneForGood: before the first pack goes, the removal of the
// index over several packs that a user's git wrote is synced. A power cut would
// bring it back, naming packs that are gone, and git take the store for damaged.
func TestRow12MultiIndexGoneForGood(t *testing.T) {
	t.Parallel()
	w, program, more, _, _ := gcWorld(t)
	more()
	packs := filepath.Join(w.store, "objects", "pack")
	git(t, w.top, "--git-dir="+w.store, "multi-pack-index", "write", "--bitmap")
	var calls []string // m: of the index over several, s: sync of the folder, p: a pack's index
	k := tracer{saw: func(tid int, c call) {
		path := c.about(t, tid)
		switch name := filepath.Base(path); {
		case c.number == unix.SYS_FSYNC && path == packs:
			calls = append(calls, "s")
		case c.number != unix.SYS_UNLINKAT || filepath.Dir(path) != packs:
		case strings.HasPrefix(name, "multi-pack-index"):
			calls = append(calls, "m")
		case strings.HasSuffix(name, ".idx"):
			calls = append(calls, "p")
		}
	}}
	k.run(t, program.command("gc"))
	list := strings.Join(calls, "")
	index, pack := strings.LastIndex(list, "m"), strings.Index(list, "p")
	if index < 0 || pack < index || !strings.Contains(list[index:pack], "s") || !strings.HasSuffix(list, "s") {
		t.Errorf("removals and syncs are %q", list)
	}
	if out, err := exec.Command("git", "--git-dir="+w.store, "fsck", "--strict").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
