//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/cmd/internal/exit"
	"anamnesis/worldstate"
)

// TestRow13EightProcesses: eight processes save and restore, each its own
// world, then all the same one, in one store. Nothing a save acknowledged is
// lost, and every refusal is an honest one.
func TestRow13EightProcesses(t *testing.T) {
	t.Parallel()
	heavy(t)
	rounds := 2
	if *nightly {
		rounds = 40
	}
	for _, c := range []struct {
		name string
		dir  func(w *rowWorld, i int) string
	}{
		{"eight worlds", func(w *rowWorld, i int) string { return filepath.Join(w.top, fmt.Sprint("world", i)) }},
		{"one world", func(w *rowWorld, i int) string { return w.dir }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newRowWorld(t)
			w.write("shared", "x")
			saved := make(chan worldstate.Snapshot, 8*rounds)
			var wg sync.WaitGroup
			for i := range 8 {
				dir := c.dir(w, i)
				w.must(os.MkdirAll(dir, 0o755))
				wg.Go(func() {
					saveAndRestore(w, programFace{t: t, dir: dir, store: w.store}, i, rounds, saved)
				})
			}
			wg.Wait()
			close(saved)
			w.face = programFace{t: t, dir: w.dir, store: w.store}
			world := w.openPackage(nil)
			n := 0
			for s := range saved {
				n++
				if err := world.Has(t.Context(), s.ID); err != nil {
					t.Errorf("snapshot %s was acknowledged and is not whole: %v", s.ID, err)
				}
				if tree := w.treeOf(s.ID); tree != s.Tree {
					t.Errorf("snapshot %s has tree %s, not %s", s.ID, tree, s.Tree)
				}
			}
			if n != 8*rounds {
				t.Errorf("%d saves of %d", n, 8*rounds)
			}
			w.whole()
		})
	}
}

// saveAndRestore is one of the eight: it writes its own file, saves, and goes
// back to a snapshot of its own.
func saveAndRestore(w *rowWorld, f programFace, i, rounds int, saved chan<- worldstate.Snapshot) {
	var last worldstate.ID
	for round := range rounds {
		text := fmt.Sprintf("process %d round %d", i, round)
		if err := os.WriteFile(filepath.Join(f.dir, fmt.Sprint("own", i)), []byte(text), 0o644); err != nil {
			w.Error(err)
			return
		}
		s, err := f.save()
		if err != nil {
			w.Errorf("process %d: save: %v", i, err)
			return
		}
		saved <- s
		if last != "" {
			if _, err := f.restore(last, noOptions); err != nil && exit.Code(err) != exit.Refused {
				w.Errorf("process %d: restore: %v", i, err)
			}
		}
		last = s.ID
	}
}

// TestRow13Lock: a lock whose holder is gone is none, whatever its file says;
// a live one is never stolen, and the loser is told whose it is.
func TestRow13Lock(t *testing.T) {
	t.Parallel()
	w := newRowWorld(t)
	w.write("a", "1")
	program := programFace{t: t, dir: w.dir, store: w.store}
	w.face = program
	w.saved()
	path := filepath.Join(w.store, "anamnesis", "lock")
	for _, stale := range []string{"1 another-boot\n", fmt.Sprintf("%d \n", os.Getpid()), "rubbish", ""} {
		w.must(os.WriteFile(path, []byte(stale), 0o600))
		if _, err := program.save(); err != nil {
			t.Errorf("a lock file that says %q and nobody holds: %v", stale, err)
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	w.must(err)
	defer f.Close()
	w.must(unix.Flock(int(f.Fd()), unix.LOCK_EX))
	text := fmt.Sprintf("{\"pid\":%d}\n", os.Getpid())
	w.must(f.Truncate(0))
	_, err = f.WriteAt([]byte(text), 0)
	w.must(err)
	waiting, err := worldstate.Open(w.dir, w.store, &worldstate.Options{LockWait: 50 * time.Millisecond})
	w.must(err)
	_, err = waiting.SaveNext(t.Context(), "")
	var locked *worldstate.LockedError
	if !errors.As(err, &locked) || exit.Code(err) != exit.Refused ||
		!strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("a live lock: %v", err)
	}
	if now, _ := os.ReadFile(path); string(now) != text {
		t.Errorf("the loser wrote %q into the winner's lock", now)
	}
	done := make(chan error)
	go func() { _, err := program.save(); done <- err }()
	w.must(unix.Flock(int(f.Fd()), unix.LOCK_UN))
	if err := <-done; err != nil {
		t.Errorf("a lock that was released: %v", err)
	}
}
