package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
)

// writeFile is what the user does beside the task.
func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// filesOf reads what is in a directory.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[rel] = string(data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// changes returns the world.changed operations of a task, each as "by path…".
func changes(t *testing.T, task *Task) (out []string) {
	t.Helper()
	for _, o := range allOps(t, task) {
		if b, ok := o.Body.(*op.WorldChanged); ok && b.By != state.ChangedByAgent {
			out = append(out, b.By+" "+strings.Join(b.Changed, " "))
		}
	}
	return out
}

func allOps(t *testing.T, task *Task) []op.Op {
	t.Helper()
	ops, err := task.Ledger.Ops(op.Range{First: 1, Last: task.Ledger.State().Last})
	if err != nil {
		t.Fatal(err)
	}
	return ops
}

// TestUserEditsStay has the user write a file in each phase in which no call
// runs, and the agent go back to before all of them.
func TestUserEditsStay(t *testing.T) {
	var task *Task
	approvals := 0
	task, _ = newTask(t, `turns:
  - calls: [{name: WriteFile, arguments: {path: agent, content: one}}, {name: Bash, arguments: {command: "echo two >agent"}}]
  - calls: [{name: AskUser, arguments: {question: "Which?"}}]
  - calls: [{name: ReadFile, arguments: {path: agent}}]
  - expect: [{on: all-joined, contains: ["[FILES]", "replying0", "approval", "question"]}]
    calls: [{name: jump_to_step, arguments: {step_id: 0, reason: back}}]
  - expect: [{on: last, contains: ["replying0", "approval", "question", "Gone again (1): agent."]}]
    reply: Done.
`, Options{Guards: Guards{Approval: "ask"}, Callbacks: Callbacks{Approve: func(context.Context, gate.Question) gate.Answer {
		approvals++
		writeFile(t, task.Place.Dir, "approval", strings.Repeat("x", approvals))
		return gate.Answer{Allow: true}
	}}})
	asked := 0
	task.opts.Callbacks.Op = func(o op.Op) {
		if _, ok := o.Body.(*op.ModelAsked); ok {
			writeFile(t, task.Place.Dir, "replying"+string(rune('0'+asked)), "mine")
			asked++
		}
	}
	task.opts.Callbacks.Ask = func(context.Context, string) (string, bool) {
		writeFile(t, task.Place.Dir, "question", "mine")
		return "a", true
	}
	writeFile(t, task.Place.Dir, "before", "mine")
	out := runOrDie(t, task)
	if out.Answer != "Done." {
		t.Fatalf("Run = %+v", out)
	}
	got := filesOf(t, task.Place.Dir)
	for _, name := range []string{"before", "replying0", "replying1", "replying2", "replying3", "approval", "question"} {
		if got[name] == "" {
			t.Errorf("%s is gone", name)
		}
	}
	if got["agent"] != "" {
		t.Errorf("the agent's file stands: %q", got["agent"])
	}
	if said := changes(t, task); !slices.Contains(said, "user replying0") {
		t.Errorf("changes: %q", said)
	}
}

// TestConflict: where the agent changed a path after the user did, a jump brings
// the user's version back, and says so; --overwrite brings that of the step.
func TestConflict(t *testing.T) {
	task, h := newTask(t, `turns:
  - calls: [{name: WriteFile, arguments: {path: notes, content: agent}}]
  - calls: [{name: Bash, arguments: {command: "echo agent >notes; rm -f gone; echo agent >deleted"}}]
  - expect: [{on: all-joined, contains: ["[FILES] The user changed files while no call of yours ran.", "New (1): notes.", "Deleted (1): deleted."]}]
    reply: Done.
  - reply: Again.
`, Options{})
	writeFile(t, task.Place.Dir, "deleted", "at first")
	asked := 0
	task.opts.Callbacks.Op = func(o op.Op) {
		if _, ok := o.Body.(*op.ModelAsked); !ok {
			return
		}
		if asked++; asked == 1 {
			writeFile(t, task.Place.Dir, "notes", "theirs")
			if err := os.Remove(filepath.Join(task.Place.Dir, "deleted")); err != nil {
				t.Error(err)
			}
		}
	}
	if out := runOrDie(t, task); out.Answer != "Done." {
		t.Fatalf("Run = %+v", out)
	}
	plan, err := inspect.PlanJump(t.Context(), h, "t", "", op.JumpRequested{To: 0})
	if err != nil || strings.Join(plan.World.Conflicts, " ") != "deleted notes" {
		t.Errorf("the dry run lists the conflicts %q, %v", plan.World.Conflicts, err)
	}
	done, err := task.JumpNow(t.Context(), op.JumpRequested{To: 0}, &op.TaskResumed{})
	if err != nil {
		t.Fatal(err)
	}
	if got := filesOf(t, task.Place.Dir); len(got) != 1 || got["notes"] != "theirs" {
		t.Errorf("after the jump: %q", got)
	}
	if strings.Join(done.Conflicts, " ") != "deleted notes" ||
		!strings.Contains(done.Notice, "the user's version stands: deleted, notes.") {
		t.Errorf("jump.done: %q, %s", done.Conflicts, done.Notice)
	}
	if _, err := task.JumpNow(t.Context(), op.JumpRequested{To: 2}, &op.TaskResumed{}); err != nil {
		t.Fatal(err)
	}
	if _, err := task.JumpNow(t.Context(), op.JumpRequested{To: 0, Overwrite: true}, &op.TaskResumed{}); err != nil {
		t.Fatal(err)
	}
	if got := filesOf(t, task.Place.Dir); len(got) != 1 || got["deleted"] != "at first" {
		t.Errorf("after --overwrite: %q", got)
	}
	if n := len(task.Ledger.State().World.Changes); n != 0 {
		t.Errorf("%d changes are still the user's", n)
	}
}

// TestUnknownAuthor: what changes between calls while a background command runs
// may be the user's or the command's. It stays, and is named as unknown.
func TestUnknownAuthor(t *testing.T) {
	task, _ := newTask(t, `turns:
  - calls: [{name: Bash, arguments: {command: "echo hi >job; sleep 600", run_in_background: true}}]
  - calls: [{name: Bash, arguments: {command: "echo a >agent"}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 0, reason: back}}]
  - expect: [{on: all-joined, contains: ["who changed them is not known", "by whom is not known"]}]
    reply: Done.
`, Options{})
	asked := 0
	task.opts.Callbacks.Op = func(o op.Op) {
		if _, ok := o.Body.(*op.ModelAsked); ok {
			if asked++; asked == 2 {
				writeFile(t, task.Place.Dir, "either", "x")
			}
		}
	}
	if out := runOrDie(t, task); out.Answer != "Done." {
		t.Fatalf("Run = %+v", out)
	}
	got := filesOf(t, task.Place.Dir)
	if got["either"] != "x" || got["agent"] != "" {
		t.Errorf("after the jump: %q", got)
	}
	if said := changes(t, task); len(said) == 0 || !strings.HasPrefix(said[0], "unknown ") {
		t.Errorf("changes: %q", said)
	}
}

// TestManyUserEdits: an operation and a notice do not grow with the number of
// files that the user changed.
func TestManyUserEdits(t *testing.T) {
	task, _ := newTask(t, `turns:
  - calls: [{name: WriteFile, arguments: {path: agent, content: one}}]
  - reply: Done.
`, Options{})
	done := false
	task.opts.Callbacks.Op = func(o op.Op) {
		if _, ok := o.Body.(*op.ModelAsked); ok && !done {
			done = true
			for i := range 300 {
				writeFile(t, task.Place.Dir, fmt.Sprintf("d%d/%d", i%10, i), "x")
			}
		}
	}
	if out := runOrDie(t, task); out.Answer != "Done." {
		t.Fatalf("Run = %+v", out)
	}
	if _, err := task.JumpNow(t.Context(), op.JumpRequested{To: 0}, &op.TaskResumed{}); err != nil {
		t.Fatal(err)
	}
	if got := filesOf(t, task.Place.Dir); len(got) != 300 {
		t.Errorf("%d files stand after the jump, want the user's 300", len(got))
	}
	for _, o := range allOps(t, task) {
		switch b := o.Body.(type) {
		case *op.WorldChanged:
			if b.NChanged != 300 || len(b.Changed) != notice.MaxListed || len(b.Notice) > 1000 {
				t.Errorf("world.changed names %d of %d paths, and %d bytes of notice", len(b.Changed), b.NChanged,
					len(b.Notice))
			}
		case *op.JumpDone:
			if b.NKept != 300 || len(b.Kept) != notice.MaxListed {
				t.Errorf("jump.done names %d of %d kept", len(b.Kept), b.NKept)
			}
		}
	}
}
