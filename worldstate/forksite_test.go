package worldstate

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// forkLeft lists what forks have left beside the store, and their notes.
func (b *bench) forkLeft() (dirs, notes []string) {
	b.Helper()
	dirs, err := filepath.Glob(filepath.Join(filepath.Dir(b.store), forkPrefix+"*"))
	b.must(err)
	notes, err = filepath.Glob(filepath.Join(b.store, stateDir, forkNotePrefix+"*"))
	b.must(err)
	return dirs, notes
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
		dirs, notes := b.forkLeft()
		if len(dirs) != 1 || len(notes) != 1 {
			b.Fatalf("left %q, noted %q", dirs, notes)
		}
		if list, err := os.ReadDir(dirs[0]); err == nil && len(list) > 0 {
			return id, dirs[0]
		}
	}
}

// clean checks that nothing of a fork is left but what a person has put there.
func (b *bench) clean(when string, persons ...string) {
	b.Helper()
	dirs, notes := b.forkLeft()
	if len(dirs) != len(persons) || len(notes) > 0 {
		b.Errorf("%s: left %q, noted %q", when, dirs, notes)
	}
	for _, dir := range persons {
		if data, err := os.ReadFile(filepath.Join(dir, "mine")); err != nil || string(data) != "a person's" {
			b.Errorf("%s: a person's directory: %q %v", when, data, err)
		}
	}
}

// TestForkLeftovers: what a killed fork has left goes with the next fork to any
// place, and with a collection.
func TestForkLeftovers(t *testing.T) {
	b := newBench(t, nil)
	id, _ := b.halfFork()
	if _, err := b.w.Fork(context.Background(), id, b.store+"-elsewhere"); err != nil {
		t.Fatal(err)
	}
	b.clean("after a fork to another place")
	b.halfFork()
	b.gc(nil)
	b.clean("after a collection")
}

// TestForkStrangers: a directory that only has the name of a leftover is somebody
// else's.
func TestForkStrangers(t *testing.T) {
	b := newBench(t, nil)
	mine := func(dir string) string {
		b.must(os.MkdirAll(dir, 0o755))
		b.must(os.WriteFile(filepath.Join(dir, "mine"), []byte("a person's"), 0o644))
		return dir
	}
	byHand := mine(filepath.Join(filepath.Dir(b.store), forkPrefix+"forked"))
	b.must(os.RemoveAll(byHand))
	id, dir := b.halfFork()
	b.must(os.Rename(dir, b.store+"-rescued"))
	mine(dir)
	mine(byHand)
	if _, err := b.w.Fork(context.Background(), id, b.store+"-forked"); err != nil {
		t.Fatal(err)
	}
	b.clean("after a fork", dir, byHand)
	if _, err := os.Lstat(b.store + "-rescued/d"); err != nil {
		t.Errorf("what a person has renamed: %v", err)
	}
}
