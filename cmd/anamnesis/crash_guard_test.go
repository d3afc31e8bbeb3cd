//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// guardKills is how many places of the guarded task the program is killed at.
const guardKills = 4

// guardedWords is a task that needs room, repeats itself and goes round.
func guardedWords() string {
	var sb strings.Builder
	sb.WriteString("turns:\n")
	for i := range 5 {
		fmt.Fprintf(&sb, "  - calls: [{name: Bash, arguments: {command: \"seq %d0001 %d0700\"}}]\n", i+1, i+1)
	}
	for i := range 10 {
		fmt.Fprintf(&sb, "  - calls: [{name: Think, arguments: {thought: \"%d %s\"}}]\n", i,
			strings.Repeat("one two three four five six seven eight nine ten ", 70))
	}
	for range 3 {
		sb.WriteString("  - calls: [{name: Bash, arguments: {command: \"false\"}}]\n")
	}
	for i := range 4 {
		fmt.Fprintf(&sb, "  - calls: [{name: jump_to_step, arguments: {step_id: 17, reason: try %d}}]\n", i)
	}
	sb.WriteString("  - reply: Done.\nreflections:\n  - reply: '{\"diagnosis\": \"x\", \"abandon\": [], \"plan\": [\"stop\"], \"question\": \"\"}'\n")
	return sb.String()
}

// TestCrashInGuards kills a task after appends while it masks, compacts, refuses
// and reflects. Resumed, it ends; nothing is run twice, and there is one strategy.
func TestCrashInGuards(t *testing.T) {
	t.Parallel()
	heavy(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "words.yaml")
	if err := os.WriteFile(script, []byte(guardedWords()), 0o644); err != nil {
		t.Fatal(err)
	}
	counts := filepath.Join(dir, "counts")
	h := guardedRun(t, dir, "count:"+counts, script)
	_, seen := guardedOps(t, h)
	if seen["context.masked"] == 0 || seen[op.KindPassDone] < 1 || seen["strategy.given"] != 1 ||
		seen[op.KindJumpDone] != 4 {
		t.Fatalf("the task does not meet all guards: %v", seen)
	}
	data, err := os.ReadFile(counts)
	if err != nil {
		t.Fatal(err)
	}
	var appends int
	if _, err := fmt.Sscan(string(data), &appends); err != nil {
		t.Fatal(err)
	}
	n := guardKills
	if *nightly {
		n = appends
	}
	for i := range spread(appends, n) {
		kill := fmt.Sprintf("append:%d", i)
		t.Run(kill, func(t *testing.T) {
			t.Parallel()
			guardedRun(t, t.TempDir(), kill, script)
		})
	}
}

// guardedRun runs the task, killed at one place, resumes it where it was
// killed, and checks the end.
func guardedRun(t *testing.T, dir, kill, script string) taskdir.Home {
	t.Helper()
	world, home := filepath.Join(dir, "w"), filepath.Join(dir, "home")
	if err := os.Mkdir(world, 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"ANAMNESIS_HOME=" + home}
	out, err := program(t.Context(), append(env, killVariable+"="+kill), "run", "--dir", world, "--model",
		"script:"+script, "--approval", "auto", "--task", "t", "--eas", "2000", "--window", "12000", "Go.")
	if killed(err) {
		out, err = program(t.Context(), env, "resume", "t")
		if err != nil && strings.Contains(out, "is done;") {
			err = nil
		}
	} else if !strings.HasPrefix(kill, "count:") {
		t.Fatalf("was not killed: %v\n%s", err, out)
	}
	if err != nil && !strings.Contains(out, "no such task") { // killed before the request was durable
		t.Fatalf("%v\n%s", err, out)
	}
	h := taskdir.Home{State: home}
	if err != nil {
		return h
	}
	st, seen := guardedOps(t, h)
	if st.Said.Answer != "Done." {
		t.Errorf("the answer is %q", st.Said.Answer)
	}
	if seen[op.KindJumpDone] == 4 && seen["strategy.given"] != 1 {
		t.Errorf("%d jumps and %d strategies, want one", seen[op.KindJumpDone], seen["strategy.given"])
	}
	report, err := opstream.Verify(t.Context(), filepath.Join(home, "tasks", "t"))
	if err != nil || report.Has(opstream.SeverityCorrupt) {
		t.Errorf("the stream does not verify: %v %+v", err, report)
	}
	return h
}

// guardedOps folds the task and counts its operations by kind. A call that was
// begun twice, and a result masked twice, are failures.
func guardedOps(t *testing.T, h taskdir.Home) (*state.State, map[op.Kind]int) {
	t.Helper()
	st, seen := new(state.State), make(map[op.Kind]int)
	begun, masked := make(map[string]bool), make(map[uint64]bool)
	err := taskdir.EachOp(h, "t", func(o op.Op) error {
		seen[o.Body.Kind()]++
		switch b := o.Body.(type) {
		case *op.ToolCalled:
			if begun[b.Call] {
				return errors.New("a call was begun twice: " + b.Call)
			}
			begun[b.Call] = true
		case *op.ContextMasked:
			for _, r := range b.Results {
				if masked[r.Seq] {
					return fmt.Errorf("op %d was masked twice", r.Seq)
				}
				masked[r.Seq] = true
			}
		}
		return state.Fold(st, o)
	})
	if err != nil {
		t.Fatal(err)
	}
	return st, seen
}
