package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate"
	"anamnesis/worldstate/worldtest"
)

// gcWorld is a messy world with a few more snapshots, and a way to make two
// more, each in a pack of its own.
func gcWorld(t *testing.T) (
	w *rowWorld, program programFace, more func(), ids *[]worldstate.Snapshot, ends [2]map[string]string) {
	w, program, first, second, ends := messyWorld(t)
	list := []worldstate.Snapshot{first, second}
	n := 0
	more = func() {
		for range 2 {
			n++
			w.write("many/00", fmt.Sprint("change ", n))
			w.write(fmt.Sprint("more/", n), fmt.Sprint(n))
			s, err := w.save()
			w.must(err)
			list = append(list, s)
		}
	}
	return w, program, more, &list, ends
}

// TestRow12KillGC kills a collection likewise: the world is not touched, every
// snapshot stands, and the next start removes what it had written.
func TestRow12KillGC(t *testing.T) {
	heavy(t)
	t.Parallel()
	w, program, more, ids, ends := gcWorld(t)
	more()
	_, total, _ := killedAt(t, program.command("gc"), 0)
	if packs := w.packs(); len(packs) != 1 {
		t.Fatalf("the collection that nobody killed leaves %q", packs)
	}
	n, calls := 0, map[string]int{}
	eachKill(total, killsOf(6, 300), func(at int) {
		n++
		more()
		before := w.look()
		_, _, last := killedAt(t, program.command("gc"), at)
		calls[last]++
		when := fmt.Sprintf("a collection killed before call %d (%s)", at, last)
		worldtest.Untouched(t, before, w.look(), nil, when)
		if n%4 == 1 {
			w.whole()
		}
		verb := [][]string{{"plan", string((*ids)[0].ID)}, {"save"},
			{"restore", "--overwrite", string((*ids)[n%2].ID)}}[n%3]
		if out, err := program.command(verb...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %v\n%s", when, verb, err, out)
		}
		if n%3 == 2 {
			worldtest.RequireEqual(t, w.look().Whats(), ends[n%2], when)
		}
		if left := w.debris(); len(left) > 0 {
			t.Fatalf("%s: left %q", when, left)
		}
	})
	if out, err := program.command("gc").CombinedOutput(); err != nil {
		t.Fatalf("the collection after all: %v\n%s", err, out)
	}
	if packs := w.packs(); len(packs) != 1 {
		t.Errorf("the collection after all leaves %q", packs)
	}
	w.whole()
	for _, s := range *ids {
		if tree := w.treeOf(s.ID); tree != s.Tree {
			t.Errorf("snapshot %s holds tree %s, not %s", s.ID, tree, s.Tree)
		}
	}
	t.Logf("%d changing calls; kills by call %v; %d snapshots", total, calls, len(*ids))
	if total < 20 {
		t.Errorf("%d calls: the kills do not reach a collection's inside", total)
	}
}

// TestRow13SaveWhileCollecting halts a collection at one of its calls after the
// other. Where it does not hold the store's lock another process saves at once,
// and nothing of that is lost.
func TestRow13SaveWhileCollecting(t *testing.T) {
	heavy(t)
	t.Parallel()
	w, program, more, ids, _ := gcWorld(t)
	more()
	_, total, _ := killedAt(t, program.command("gc"), 0)
	free, calls := 0, map[string]int{}
	for at := range spread(total, 16) {
		more()
		last := haltedAt(t, program.command("gc"), at, func() {
			if w.locked() {
				return
			}
			free++
			w.write("meanwhile", fmt.Sprint(at))
			s, err := w.save()
			w.must(err)
			*ids = append(*ids, s)
		})
		calls[last]++
	}
	w.whole()
	for _, s := range *ids {
		if tree := w.treeOf(s.ID); tree != s.Tree {
			t.Errorf("snapshot %s holds tree %s, not %s", s.ID, tree, s.Tree)
		}
	}
	t.Logf("%d calls, halted at %v; the lock was free %d times", total, calls, free)
	if free < 3 {
		t.Errorf("the lock was free %d times", free)
	}
}

// TestGCNewTask halts a collection with a cap before it has looked at the store. A
// task that begins meanwhile is no deleted one: all its steps stay.
func TestGCNewTask(t *testing.T) {
	top := t.TempDir()
	words := `turns:
  - calls:
      - {name: Bash, arguments: {command: "head -c 100000 /dev/urandom >big"}}
` + strings.Repeat(`  - calls:
      - {name: Bash, arguments: {command: "echo more >>big"}}
`, 5) + "  - reply: Done.\n"
	if err := errors.Join(os.Mkdir(filepath.Join(top, "w"), 0o755), os.WriteFile(filepath.Join(top, "words.yaml"), []byte(words), 0o600)); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(builtProgram(t), args...)
		cmd.Env, cmd.Dir = append(os.Environ(), "ANAMNESIS_HOME="+filepath.Join(top, "home")), top
		return cmd
	}
	do := func(args ...string) {
		t.Helper()
		if out, err := command(args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	do("run", "--dir", "w", "--model", "script:words.yaml", "--approval", "auto", "--sandbox", "off",
		"--task", "old", "Go.")
	last := haltedAt(t, command("world", "gc", "--dir", "w", "--max-bytes", "600000"), 1, func() {
		do("run", "--dir", "w", "--model", "script:words.yaml", "--approval", "auto", "--sandbox", "off",
			"--task", "new", "Go.")
	})
	t.Logf("halted at %s", last)
	for step := range 6 {
		do("world", "show", "--task", "new", fmt.Sprintf("%d:big", step+1))
	}
	do("world", "verify", "--task", "new")
}

// locked reports whether somebody holds the store's lock.
func (w *rowWorld) locked() bool {
	w.Helper()
	f, err := os.Open(filepath.Join(w.store, "anamnesis", "lock"))
	w.must(err)
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
}
