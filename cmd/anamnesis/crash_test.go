//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

var nightly = flag.Bool("nightly", false, "run the heavy counts")

// crashRuns is at how many places of the demo CI kills the program.
const crashRuns = 3

// killVariable tells a child process where to end itself by SIGKILL:
// append:N after the N-th durable append, sealed:N the same while the log seals
// itself between any two appends, op:N after the append that holds operation N,
// restore:N at the N-th point of a restore, count:FILE to count both.
const killVariable = "ANAMNESIS_TEST_KILL"

// crashMain is the program with the seams the crash story needs.
func crashMain() {
	a := newApp()
	appends, points := 0, 0
	kind, arg, _ := strings.Cut(os.Getenv(killVariable), ":")
	at, _ := strconv.Atoi(arg)
	die := func() { syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }
	a.store.SnapshotEvery = 1     // every step leaves one, so that every resume begins with one
	a.store.Stream.SealAfter = -1 // when a seal falls is a matter of time: no count could name a place
	if kind == "sealed" {
		a.store.Stream.SealAfter = time.Millisecond
	}
	a.store.Stream.AfterAppend = func(seq uint64) {
		appends++
		if kind == "op" && seq >= uint64(at) || (kind == "append" || kind == "sealed") && appends == at {
			die()
		}
	}
	a.store.World.Hook = func(string) {
		if points++; kind == "restore" && points == at {
			die()
		}
	}
	a.store.Stream.Now = fastClock(os.Getenv(clockVariable))
	code := a.main(os.Args[1:])
	if kind == "count" {
		if err := os.WriteFile(arg, fmt.Appendf(nil, "%d %d", appends, points), 0o600); err != nil {
			code = 99
		}
	}
	os.Exit(code)
}

// program runs this test binary as the program, in a process of its own.
func program(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1")
	cmd.Env = append(cmd.Env, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// heavy skips a test that takes minutes and rarely fails, unless CI or -nightly runs it.
func heavy(t testing.TB) {
	t.Helper()
	if (testing.Short() || os.Getenv("ANAMNESIS_CI") == "") && !*nightly {
		t.Skip("NOT RUN: heavy; .ci/run runs it, or ANAMNESIS_CI=1")
	}
}

// TestCrashStory kills a running demo after appends and inside restores. Each
// time the task is resumed, continues from what was acknowledged, and ends with
// passing tests and a verified stream.
func TestCrashStory(t *testing.T) {
	t.Parallel()
	heavy(t)
	runs := crashRuns
	counts := filepath.Join(t.TempDir(), "counts")
	out, err := program(t.Context(), []string{killVariable + "=count:" + counts}, "demo", "--dir",
		filepath.Join(t.TempDir(), "demo"))
	if err != nil {
		t.Fatalf("the demo fails without a crash: %v\n%s", err, out)
	}
	data, err := os.ReadFile(counts)
	if err != nil {
		t.Fatal(err)
	}
	var appends, points int
	if _, err := fmt.Sscan(string(data), &appends, &points); err != nil || appends < 60 || points < 4 {
		t.Fatalf("counted %q: %v; want at least 60 appends and 4 points of a restore", data, err)
	}
	var kills []string
	for i := range spread(points, runs/3) {
		kills = append(kills, fmt.Sprintf("restore:%d", i))
	}
	left := runs - len(kills)
	if *nightly {
		left = appends
	}
	for i := range spread(appends, left) {
		// Seals only add to the appends, so both kinds come to pass.
		kind := "append"
		if len(kills)%2 == 0 {
			kind = "sealed"
		}
		kills = append(kills, fmt.Sprintf("%s:%d", kind, i))
	}
	t.Logf("%d kills: %d appends and %d points of a restore to choose from", len(kills), appends, points)
	var wg sync.WaitGroup
	gate := make(chan struct{}, 2)
	for _, kill := range kills {
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			if err := crashOnce(t.Context(), t.TempDir(), kill); err != nil {
				t.Errorf("%s: %v", kill, err)
			}
		})
	}
	wg.Wait()
}

// everyNth returns every nth of the places to kill at; the nightly run takes all of them.
func everyNth[T any](nth int, all []T) []T {
	if *nightly {
		return all
	}
	var some []T
	for i := 0; i < len(all); i += nth {
		some = append(some, all[i])
	}
	return some
}

// spread yields n numbers evenly spread over 1..total, or all.
func spread(total, n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		n = min(n, total)
		for i := range n {
			if !yield(1 + i*(total-1)/max(n-1, 1)) {
				return
			}
		}
	}
}

// killed reports whether a program ended by SIGKILL.
func killed(err error) bool {
	var ended *exec.ExitError
	return errors.As(err, &ended) && ended.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

func crashOnce(ctx context.Context, tmp, kill string) error {
	dir := filepath.Join(tmp, "demo")
	out, err := program(ctx, []string{killVariable + "=" + kill}, "demo", "--dir", dir)
	if !killed(err) {
		return fmt.Errorf("was not killed: %v\n%s", err, out)
	}
	home := filepath.Join(dir, "home")
	tasks, err := os.ReadDir(filepath.Join(home, "tasks"))
	if err != nil || len(tasks) == 0 {
		return fmt.Errorf("left no task behind: %w", err)
	}
	// The last task is the one that was killed.
	task := tasks[len(tasks)-1].Name()
	module := map[string]string{"demo_one": "ledger", "demo_two": "invoice"}[task]
	// The resume is killed, too, at the same place from its own beginning.
	out, err = program(ctx, []string{"ANAMNESIS_HOME=" + home, killVariable + "=" + kill}, "resume", task)
	if killed(err) {
		out, err = program(ctx, []string{"ANAMNESIS_HOME=" + home}, "resume", task)
	}
	if err != nil && !strings.Contains(out, "is done;") {
		return fmt.Errorf("resume: %w\n%s", err, out)
	}
	check := exec.CommandContext(ctx, "go", "test", "./...")
	check.Dir = filepath.Join(dir, module)
	if text, err := check.CombinedOutput(); err != nil {
		return fmt.Errorf("the resumed task left failing tests: %w\n%s", err, text)
	}
	found, err := inspect.Examine(ctx, taskdir.Home{State: home}, task)
	if err != nil || found.Has(opstream.SeverityCorrupt) {
		return fmt.Errorf("the task is not whole: %v %+v", err, found)
	}
	return onceOnly(home, task)
}

// onceOnly checks what a crash could do twice: no call was begun twice, and
// the first task made one jump, one block and one card.
func onceOnly(home, task string) error {
	h := taskdir.Home{State: home}
	st := new(state.State)
	begun := make(map[string]int)
	err := taskdir.EachOp(h, task, func(o op.Op) error {
		if b, ok := o.Body.(*op.ToolCalled); ok {
			begun[b.Call]++
		}
		return state.Fold(st, o)
	})
	if err != nil {
		return err
	}
	for id, n := range begun {
		if n > 1 {
			return fmt.Errorf("call %s was begun %d times", id, n)
		}
	}
	cards, err := filepath.Glob(filepath.Join(home, "knowledge_base", "*", "*.md"))
	if err != nil {
		return err
	}
	if task == "demo_one" && (st.Totals.Jumps != 1 || st.Totals.Blocks != 1 || len(cards) != 1) {
		return fmt.Errorf("%d jumps, %d blocks, %d cards; want one jump, one block and its card", st.Totals.Jumps,
			st.Totals.Blocks, len(cards))
	}
	return nil
}

// TestCrashInJump kills a user's jump after appends and inside its restore.
// A resume without words finishes what had begun: the world is at the target,
// or, when the jump had not become durable, where it was.
func TestCrashInJump(t *testing.T) {
	t.Parallel()
	heavy(t)
	kills := []string{
		"append:1", "append:2", "append:3", "append:4", "restore:1", "restore:3", "restore:5", "restore:7",
		"restore:9", "restore:10", "restore:11", "restore:12", "restore:14",
	}
	for i, kill := range everyNth(2, kills) {
		for _, removed := range everyNth(2, []bool{i%2 == 0, i%2 != 0}) {
			t.Run(fmt.Sprintf("%s removed %v", kill, removed), func(t *testing.T) {
				t.Parallel()
				crashInJump(t, kill, removed)
			})
		}
	}
}

// crashInJump kills one jump. Removed: its directory is removed, too, and the next
// jump brings back every file.
func crashInJump(t *testing.T, kill string, removed bool) {
	dir := t.TempDir()
	world, script := filepath.Join(dir, "w"), filepath.Join(dir, "words.yaml")
	env := []string{"ANAMNESIS_HOME=" + filepath.Join(dir, "home")}
	words := `turns:
  - calls:
      - {name: WriteFile, arguments: {path: one.txt, content: "1"}}
      - {name: WriteFile, arguments: {path: two.txt, content: "2"}}
      - {name: WriteFile, arguments: {path: three.txt, content: "3"}}
  - reply: Done.
`
	if err := errors.Join(os.Mkdir(world, 0o755), os.WriteFile(filepath.Join(world, "zero.txt"), []byte("0"), 0o644),
		os.WriteFile(script, []byte(words), 0o644)); err != nil {
		t.Fatal(err)
	}
	if out, err := program(t.Context(), env, "run", "--dir", world, "--model", "script:"+script, "--approval", "auto", "--task", "t", "Go."); err != nil {
		t.Fatalf("run: %v\n%s", err, out)
	}
	out, err := program(t.Context(), append(env, killVariable+"="+kill), "jump", "--compact", "t", "0")
	if !killed(err) {
		t.Fatalf("jump was not killed: %v\n%s", err, out)
	}
	want := "zero.txt"
	if removed {
		want = "one.txt three.txt two.txt zero.txt"
		if err := os.RemoveAll(world); err != nil {
			t.Fatal(err)
		}
		if out, err = program(t.Context(), env, "jump", "t", "1"); err != nil || strings.Contains(out, "kept") {
			t.Errorf("jump: %v\n%s", err, out)
		}
	} else if kill == "append:1" { // the request itself is the second append
		want = "one.txt three.txt two.txt zero.txt"
	} else {
		if out, err = program(t.Context(), env, "tasks"); err != nil || !strings.Contains(out, "interrupted") {
			t.Errorf("tasks does not say that the jump was interrupted: %v\n%s", err, out)
		}
		if out, err = program(t.Context(), env, "resume", "t"); err != nil {
			t.Errorf("resume: %v\n%s", err, out)
		}
	}
	var names []string
	entries, err := os.ReadDir(world)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the world holds %q, want %q", got, want)
	}
}

// TestCrashInRestore kills a user's restore of the files after appends and
// inside the restore. A resume tells what became of it, once: the files are all
// those of the target, which the model is shown, or all those from before.
func TestCrashInRestore(t *testing.T) {
	t.Parallel()
	heavy(t)
	for _, kill := range everyNth(3, []string{"append:1", "append:2", "append:3", "restore:1", "restore:4", "restore:6", "restore:8", "restore:10", "restore:12", "restore:13"}) {
		t.Run(kill, func(t *testing.T) {
			t.Parallel()
			crashInRestore(t, kill)
		})
	}
}

func crashInRestore(t *testing.T, kill string) {
	dir := t.TempDir()
	world, script := filepath.Join(dir, "w"), filepath.Join(dir, "words.yaml")
	home := filepath.Join(dir, "home")
	env := []string{"ANAMNESIS_HOME=" + home}
	words := `turns:
  - calls:
      - {name: WriteFile, arguments: {path: one.txt, content: "1"}}
      - {name: WriteFile, arguments: {path: zero.txt, content: "z", mode: overwrite}}
  - reply: Done.
`
	if err := errors.Join(os.Mkdir(world, 0o755), os.WriteFile(filepath.Join(world, "zero.txt"), []byte("0"), 0o644),
		os.WriteFile(filepath.Join(world, "two.txt"), []byte("2"), 0o644), os.WriteFile(script, []byte(words),
			0o644)); err != nil {
		t.Fatal(err)
	}
	if out, err := program(t.Context(), env, "run", "--dir", world, "--model", "script:"+script, "--approval", "auto", "--task", "t", "Go."); err != nil {
		t.Fatalf("run: %v\n%s", err, out)
	}
	out, err := program(t.Context(), append(env, killVariable+"="+kill), "world", "restore", "--task", "t", "0")
	if !killed(err) {
		t.Fatalf("restore was not killed: %v\n%s", err, out)
	}
	intents := func() (intended, restored int, last *op.WorldRestored) {
		err := taskdir.EachOp(taskdir.Home{State: home}, "t", func(o op.Op) error {
			switch b := o.Body.(type) {
			case *op.RestoreIntended:
				intended++
			case *op.WorldRestored:
				restored++
				last = b
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return intended, restored, last
	}
	begun, ended, _ := intents()
	if begun > ended { // to be told of
		if out, err = program(t.Context(), env, "tasks"); err != nil || !strings.Contains(out, "interrupted") {
			t.Errorf("tasks does not say that something was interrupted: %v\n%s", err, out)
		}
		for range 2 { // the second finds nothing to tell
			out, err = program(t.Context(), env, "resume", "t")
			if err == nil && !strings.Contains(out, "a restore of the files to step 0 was interrupted") {
				t.Errorf("resume does not tell of it:\n%s", out)
			}
		}
		if err == nil {
			t.Errorf("the second resume tells of it again:\n%s", out)
		}
	}
	one, errOne := os.ReadFile(filepath.Join(world, "one.txt"))
	zero, err := os.ReadFile(filepath.Join(world, "zero.txt"))
	if err != nil {
		t.Fatal(err)
	}
	back := errors.Is(errOne, os.ErrNotExist) && string(zero) == "0"
	if !back && (string(one) != "1" || string(zero) != "z") {
		t.Errorf("the world is neither: one.txt %q (%v), zero.txt %q", one, errOne, zero)
	}
	begun, ended, last := intents()
	switch {
	case begun != ended || begun > 1:
		t.Errorf("%d restores were intended and %d have a result", begun, ended)
	case back != (last != nil && last.Written == 1 && last.Deleted == 1 && strings.Contains(last.Notice, "zero.txt") &&
		strings.Contains(last.Notice, "one.txt")):
		t.Errorf("brought back: %v; recorded %+v", back, last)
	}
}

// clockVariable is START:FACTOR: where the clock of crashMain began, in Unix nanoseconds of the real
// clock, and how much faster it goes.
const clockVariable = "ANAMNESIS_TEST_CLOCK"

// fastClock returns the clock that clockVariable describes; nil if it is not set.
func fastClock(setting string) func() time.Time {
	from, by, ok := strings.Cut(setting, ":")
	if !ok {
		return nil
	}
	begun, err := strconv.ParseInt(from, 10, 64)
	factor, ferr := strconv.Atoi(by)
	if err != nil || ferr != nil {
		panic(clockVariable + ": " + setting)
	}
	start := time.Unix(0, begun)
	return func() time.Time { return start.Add(time.Since(start) * time.Duration(factor)) }
}
