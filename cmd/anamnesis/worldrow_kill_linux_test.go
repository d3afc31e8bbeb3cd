package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"anamnesis/worldstate"
	"anamnesis/worldstate/worldtest"
)

// killsOf is how many kills one verb gets: spread over its system calls, or in
// the nightly run every call until the number is reached.
func killsOf(usual, heavy int) int {
	if *nightly {
		return heavy
	}
	return usual
}

// eachKill calls do with the numbers of calls to kill at, over and over until
// there were enough. total is how many calls the verb makes.
func eachKill(total, kills int, do func(at int)) {
	for done := 0; done < kills; {
		for at := range spread(total, min(kills-done, total)) {
			do(at)
			done++
		}
	}
}

// messyWorld is a world whose way back needs every kind of step, with ignored
// files and repositories inside that no kill may touch.
func messyWorld(t *testing.T) (
	w *rowWorld, program programFace, first, second worldstate.Snapshot, ends [2]map[string]string) {
	w = newRowWorld(t)
	program = programFace{t: t, dir: w.dir, store: w.store}
	w.face = program
	w.write(".gitignore", "*.log\nnode_modules/\n")
	for _, p := range []string{"keep.log", "d/keep.log", "node_modules/m/index.js", "inner/.git/HEAD", "inner/.git/objects/xx/yy", ".env.log"} {
		w.write(p, "precious "+p)
	}
	w.write("inner/f", "1")
	for i := range 60 { // over what is synced one by one
		w.write(fmt.Sprintf("many/%02d", i), "one")
	}
	w.write("d/x", "x")
	w.write("d/sub/y", "y")
	w.write("swap", "a file")
	w.write("grows", "0123456789")
	w.write("shrinks", "the quick brown fox")
	w.write("run.sh", "#!/bin/sh\n")
	w.must(os.Chmod(w.path("run.sh"), 0o700))
	w.must(os.Symlink("swap", w.path("link")))
	w.must(os.MkdirAll(w.path("empty/er"), 0o750))
	w.write("ro/f", "1")
	w.must(os.Chmod(w.path("ro"), 0o555))
	first = w.saved()
	ends[0] = w.look().Whats()
	for i := range 60 {
		w.write(fmt.Sprintf("many/%02d", i), "the other")
	}
	w.write("inner/f", "2")
	w.remove("d/sub", "d/x", "swap", "link", "empty")
	w.write("d/sub", "now a file")
	w.write("swap/in", "now a directory")
	w.must(os.Symlink("elsewhere", w.path("link")))
	w.write("grows", "0123456789 and on")
	w.write("shrinks", "The dog")
	w.write("run.sh", "#!/bin/bash\n")
	w.must(os.Chmod(w.path("run.sh"), 0o644))
	w.write("ro/f", "2")
	w.write("new/deep/file", "2")
	second = w.saved()
	ends[1] = w.look().Whats()
	return w, program, first, second, ends
}

// debris lists what no verb may leave behind: in the world, beside it and in
// the store.
func (w *rowWorld) debris() (left []string) {
	w.Helper()
	w.must(filepath.WalkDir(w.top, func(path string, d os.DirEntry, err error) error {
		name := d.Name()
		if strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, "journal") ||
			strings.HasPrefix(name, ".anamnesis-") || strings.HasPrefix(name, "fork-") || name == "collecting" ||
			strings.HasSuffix(name, ".pack") && !exists(strings.TrimSuffix(path, ".pack")+".idx") {
			left = append(left, path)
		}
		return err
	}))
	return left
}

// TestRow12KillRestore kills a restore before each of its system calls that
// change something: after the next start the tree is the target or the source,
// ignored files and inner repositories included, and nothing is locked or left.
func TestRow12KillRestore(t *testing.T) {
	heavy(t)
	t.Parallel()
	w, program, first, second, ends := messyWorld(t)
	_, total, _ := killedAt(t, program.command("restore", "--overwrite", string(first.ID)), 0)
	worldtest.RequireEqual(t, w.look().Whats(), ends[0], "the restore that nobody killed")
	w.restored(second, noOptions)
	ended, calls := [2]int{}, map[string]int{}
	kills := 0
	eachKill(total, killsOf(8, 1000), func(at int) {
		kills++
		status, _, last := killedAt(t, program.command("restore", "--overwrite", string(first.ID)), at)
		when := fmt.Sprintf("killed before call %d (%s)", at, last)
		if status.Signaled() && status.Signal() == syscall.SIGKILL {
			calls[last]++
		}
		// Any verb that looks at the tree ends what was begun.
		verb := [][]string{{"plan", string(second.ID)}, {"save"}, {"restore", string(second.ID)}}[kills%3]
		if kills%3 < 2 {
			if out, err := program.command(verb...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %v\n%s", when, verb, err, out)
			}
			now := w.look().Whats()
			end := slices.IndexFunc(ends[:],
				func(e map[string]string) bool { return len(worldtest.Differences(now, e)) == 0 })
			if end < 0 {
				worldtest.RequireEqual(t, now, ends[0], when+": neither end")
			}
			ended[end]++
		}
		if _, err := program.restore(second.ID, overwriting); err != nil {
			t.Fatalf("%s: back again: %v", when, err)
		}
		worldtest.RequireEqual(t, w.look().Whats(), ends[1], when+": back again")
		if left := w.debris(); len(left) > 0 {
			t.Fatalf("%s: left %q", when, left)
		}
	})
	w.whole()
	t.Logf("%d changing calls; kills by call %v; %d ended at the target, %d at the source, 0 between", total, calls,
		ended[0], ended[1])
	if total < 150 || ended[0] == 0 || ended[1] == 0 {
		t.Errorf("%d calls, ends %v: the kills do not reach a restore's inside", total, ended)
	}
}

var overwriting = worldstate.RestoreOptions{PlanOptions: worldstate.PlanOptions{OverwriteEdits: true}}

// TestRow12KillSave kills a save likewise: the world is not touched, what was
// saved before stands, and the next save succeeds.
func TestRow12KillSave(t *testing.T) {
	heavy(t)
	t.Parallel()
	w, program, first, second, _ := messyWorld(t)
	change := func(n int) {
		for i := range 5 {
			w.write(fmt.Sprintf("many/%02d", i), fmt.Sprint("change ", n, i))
		}
		w.write("big", strings.Repeat(fmt.Sprint("large ", n), 1<<16))
	}
	change(0)
	_, total, _ := killedAt(t, program.command("save"), 0)
	n, calls := 0, map[string]int{}
	eachKill(total, killsOf(6, 300), func(at int) {
		n++
		change(n)
		before := w.look()
		_, _, last := killedAt(t, program.command("save"), at)
		calls[last]++
		worldtest.Untouched(t, before, w.look(), nil, fmt.Sprintf("a save killed before call %d (%s)", at, last))
		s := w.saved()
		if left := w.debris(); len(left) > 0 {
			t.Fatalf("killed before call %d (%s): left %q", at, last, left)
		}
		if n%10 == 1 {
			w.whole()
			if tree := w.treeOf(s.ID); tree != s.Tree {
				t.Errorf("tree %s, not %s", tree, s.Tree)
			}
		}
	})
	w.whole()
	w.restored(first, overwriting)
	w.restored(second, noOptions)
	t.Logf("%d changing calls; kills by call %v", total, calls)
	if total < 12 {
		t.Errorf("%d calls: the kills do not reach a save's inside", total)
	}
}

// TestRow12KillFork kills a fork likewise: its directory is whole or not
// there, and the next try succeeds.
func TestRow12KillFork(t *testing.T) {
	heavy(t)
	t.Parallel()
	w, program, first, _, ends := messyWorld(t)
	want := worldtest.Without(ends[0], ".git", "node_modules", "keep.log")
	dir := filepath.Join(w.top, "forked")
	_, total, _ := killedAt(t, program.command("fork", string(first.ID), dir), 0)
	w.must(os.RemoveAll(dir))
	kill := func(at int) {
		_, _, last := killedAt(t, program.command("fork", string(first.ID), dir), at)
		if exists(dir) {
			worldtest.RequireEqual(t, worldtest.Snapshot(t, dir).Whats(), want,
				fmt.Sprintf("a fork killed before call %d (%s)", at, last))
			w.must(os.RemoveAll(dir))
		}
		if out, err := program.command("fork", string(first.ID), dir).CombinedOutput(); err != nil {
			t.Fatalf("again, after a kill before call %d (%s): %v\n%s", at, last, err, out)
		}
		worldtest.RequireEqual(t, worldtest.Snapshot(t, dir).Whats(), want, "again")
		if left := w.debris(); len(left) > 0 {
			t.Fatalf("killed before call %d (%s): left %q", at, last, left)
		}
		w.must(os.RemoveAll(dir))
	}
	eachKill(total, killsOf(4, 150), kill)
	for at := range spread(12, killsOf(3, 12)) { // while the fork is being noted
		kill(at)
	}
	t.Logf("%d changing calls", total)
}

// TestRow12KillJump kills a task's jump likewise: a resume ends it, the world
// is at one of the two steps, and the stream verifies.
func TestRow12KillJump(t *testing.T) {
	heavy(t)
	t.Parallel()
	w := newRowWorld(t)
	home, script := filepath.Join(w.top, "home"), filepath.Join(w.top, "words.yaml")
	w.write("zero", "0")
	w.write(".gitignore", "*.log\n")
	w.write("run.log", "precious")
	words := `turns:
  - calls:
      - {name: WriteFile, arguments: {path: one, content: "1"}}
      - {name: WriteFile, arguments: {path: zero, content: "1"}}
` + strings.Repeat("  - reply: Done.\n", 2000) // a resume may ask again
	w.must(os.WriteFile(script, []byte(words), 0o600))
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(builtProgram(t), args...)
		cmd.Env, cmd.Dir = append(os.Environ(), "ANAMNESIS_HOME="+home), w.top
		return cmd
	}
	do := func(when string, args ...string) {
		if out, err := command(args...).CombinedOutput(); err != nil &&
			!strings.Contains(string(out), "is the current step") && !strings.Contains(string(out), "is done;") {
			t.Fatalf("%s: %v: %v\n%s", when, args, err, out)
		}
	}
	zero := w.look().Whats()
	do("first", "run", "--dir", w.dir, "--model", "script:"+script, "--approval", "auto", "--task", "t", "Go.")
	one := w.look().Whats()
	_, total, _ := killedAt(t, command("jump", "t", "0"), 0)
	worldtest.RequireEqual(t, w.look().Whats(), zero, "the jump that nobody killed")
	do("back", "jump", "t", "1")
	ended := [2]int{}
	eachKill(total, killsOf(4, 300), func(at int) {
		_, _, last := killedAt(t, command("jump", "t", "0"), at)
		when := fmt.Sprintf("killed before call %d (%s)", at, last)
		do(when, "resume", "t")
		now := w.look().Whats()
		if end := slices.IndexFunc([]map[string]string{zero, one}, func(e map[string]string) bool { return len(worldtest.Differences(now, e)) == 0 }); end >= 0 {
			ended[end]++
		} else {
			worldtest.RequireEqual(t, now, zero, when+": neither end")
		}
		do(when, "ops", "verify", "--dir", filepath.Join(home, "tasks", "t"))
		do(when, "jump", "t", "1")
		worldtest.RequireEqual(t, w.look().Whats(), one, when+": back again")
	})
	t.Logf("%d changing calls; %d ended at the target, %d at the source", total, ended[0], ended[1])
	if ended[0] == 0 || ended[1] == 0 {
		t.Errorf("ends %v: the kills do not reach a jump's inside", ended)
	}
}
