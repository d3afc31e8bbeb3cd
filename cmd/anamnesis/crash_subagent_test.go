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
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/taskdir"
)

// subagentKills is how many places of a task with a subagent the program is
// killed at.
const subagentKills = 4

// subagentWords is a task that hands a part to a subagent, and continues with that
// one, or with another, where it does not know what became of it.
const subagentWords = `turns:
  - calls: [{name: Task, arguments: {subagent: coder, description: write b, prompt: Write it.}}]
  - choose:
      - when: {contains: with resume "t.1"}
        calls: [{name: Task, arguments: {subagent: coder, description: go on, prompt: Go on., resume: t.1}}]
      - when: {contains: Outcome unknown}
        calls: [{name: Task, arguments: {subagent: coder, description: again, prompt: Write it.}}]
      - when: {contains: Written.}
        reply: Done.
  - expect: [{on: result, contains: Written.}]
    reply: Done.
subagents:
  - agent: coder
    turns:
      - calls: [{name: WriteFile, arguments: {path: b.txt, content: "b\n", mode: append}}]
      - reply: Written.
      - reply: Written.
`

// TestCrashInSubagent kills a task after appends, its own and its subagent's.
// Resumed, it knows the subagent by its name and continues it; no call is run
// twice, and both records are whole.
func TestCrashInSubagent(t *testing.T) {
	t.Parallel()
	heavy(t)
	script := filepath.Join(t.TempDir(), "words.yaml")
	if err := os.WriteFile(script, []byte(subagentWords), 0o644); err != nil {
		t.Fatal(err)
	}
	counts := filepath.Join(t.TempDir(), "counts")
	crashWithSubagent(t, script, "count:"+counts)
	data, err := os.ReadFile(counts)
	if err != nil {
		t.Fatal(err)
	}
	var appends int
	if _, err := fmt.Sscan(string(data), &appends); err != nil || appends < subagentKills {
		t.Fatalf("%d appends: %v", appends, err)
	}
	n := subagentKills
	if *nightly {
		n = appends
	}
	named := 0
	for i := range spread(appends-1, n) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if crashWithSubagent(t, script, fmt.Sprintf("append:%d", i)) {
				named++
			}
		})
	}
	if named < n/3 {
		t.Errorf("of %d kills %d were while a subagent was at work; want a third", n, named)
	}
}

// crashWithSubagent runs the task, killed at one place, and resumes it. It
// reports whether a subagent was lost and gone on with.
func crashWithSubagent(t *testing.T, script, kill string) (lost bool) {
	t.Helper()
	dir := t.TempDir()
	world, home := filepath.Join(dir, "w"), filepath.Join(dir, "home")
	if err := os.Mkdir(world, 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"ANAMNESIS_HOME=" + home}
	out, err := program(t.Context(), append(env, killVariable+"="+kill), "run", "--dir", world, "--model",
		"script:"+script, "--approval", "auto", "--task", "t", "Go.")
	if killed(err) {
		out, err = program(t.Context(), env, "resume", "t")
	} else if !strings.HasPrefix(kill, "count:") {
		t.Fatalf("was not killed: %v\n%s", err, out)
	}
	if strings.Contains(out, "no such task") { // killed before the request was durable
		return false
	}
	if err != nil && !strings.Contains(out, "is done;") {
		t.Fatalf("%v\n%s", err, out)
	}
	h := taskdir.Home{State: home}
	ids, err := h.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		checkWhole(t, h, id)
	}
	st, err := taskdir.ReadState(h, "t")
	if err != nil || st.Said.Answer != "Done." || len(st.Subagents) == 0 {
		t.Fatalf("answer %q, %d subagents: %v\n%s", st.Said.Answer, len(st.Subagents), err, out)
	}
	for _, c := range st.Subagents {
		if c.Running || c.Reason != "done" && len(st.Subagents) == 1 {
			t.Errorf("subagent %+v", c)
		}
	}
	begun, err := filepath.Glob(filepath.Join(home, "tasks", "t.1"))
	if err == nil && len(begun) == 1 && st.Subagents[0].Task != "t.1" {
		t.Errorf("the task does not know its first subagent: %+v", st.Subagents)
	}
	return resumedSubagent(t, h)
}

// resumedSubagent reports whether a subagent worked twice.
func resumedSubagent(t *testing.T, h taskdir.Home) (resumed bool) {
	t.Helper()
	err := taskdir.EachOp(h, "t", func(o op.Op) error {
		if b, ok := o.Body.(*op.SubagentStarted); ok {
			resumed = resumed || b.Resumed
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return resumed
}

// checkWhole fails where a record does not verify, or a call was begun twice.
func checkWhole(t *testing.T, h taskdir.Home, id string) {
	t.Helper()
	begun := make(map[string]bool)
	err := taskdir.EachOp(h, id, func(o op.Op) error {
		if b, ok := o.Body.(*op.ToolCalled); ok {
			if begun[b.Call] {
				return errors.New("a call was begun twice: " + b.Call)
			}
			begun[b.Call] = true
		}
		return nil
	})
	if err != nil && !errors.Is(err, taskdir.ErrNoTask) {
		t.Errorf("%s: %v", id, err)
	}
	found, err := inspect.Examine(t.Context(), h, id)
	if err != nil || found.Has(opstream.SeverityCorrupt) {
		t.Errorf("%s is not whole: %v %+v", id, err, found)
	}
}
