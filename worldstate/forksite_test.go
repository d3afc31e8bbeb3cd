package worldstate

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/restore"
)

// forkLeft lists what forks have left beside the store.
func (b *bench) forkLeft() []string {
	b.Helper()
	dirs, err := filepath.Glob(filepath.Join(filepath.Dir(b.store), restore.ForkPrefix+"*"))
	b.must(err)
	return dirs
}

// halfFork leaves a killed fork with something in it.
func (b *bench) halfFork() (id ID, dir string) {
	b.Helper()
	b.write("d/f", "1")
	b.must(os.Chmod(b.path("d"), 0o555))
	id = b.save().ID
	for n := 0; ; n++ {
		if !b.killed("fork", id, n) {
			b.Fatal("no kill leaves a fork with something in it")
		}
		dirs := b.forkLeft()
		if len(dirs) != 1 {
			b.Fatalf("left %q", dirs)
		}
		if list, err := os.ReadDir(dirs[0]); err == nil && len(list) > 0 {
			return id, dirs[0]
		}
	}
}

// TestForkLeftovers: what a killed fork has left goes with the next fork beside it.
// A fork that is being built stays, and so does a directory whose name only begins so.
func TestForkLeftovers(t *testing.T) {
	b := newBench(t, nil)
	id, dir := b.halfFork()
	beside := filepath.Dir(b.store)
	live := filepath.Join(beside, restore.ForkPrefix+fsys.NewNonce())
	b.must(os.Mkdir(live, 0o755))
	fd, err := fsys.Openat(unix.AT_FDCWD, live, fsys.DirFlags, 0)
	b.must(err)
	defer fsys.CloseFD(fd)
	b.must(unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)) // as who builds holds it
	mine := filepath.Join(beside, restore.ForkPrefix+"mine")
	b.must(os.Mkdir(mine, 0o755))
	if _, err := b.w.Fork(b.Context(), id, b.store+"-elsewhere"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the killed fork is left: %v", err)
	}
	for _, dir := range []string{live, mine} {
		if _, err := os.Lstat(dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
