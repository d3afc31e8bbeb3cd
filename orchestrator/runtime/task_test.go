package runtime

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/model/script"
	"anamnesis/orchestrator/optest"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
)

func TestMain(m *testing.M) {
	guard.SuperviseMain()
	os.Exit(m.Run())
}

// newTask creates a task with real stores and a script for a model, and the
// tools that were asked for beside those every agent has.
func newTask(t testing.TB, words string, opts Options, more ...string) (*Task, taskdir.Home) {
	t.Helper()
	m, err := script.Parse([]byte(words))
	if err != nil {
		t.Fatal(err)
	}
	opts.Model = m
	asked, err := builtin.OptIn(more...)
	if err != nil {
		t.Fatal(err)
	}
	if opts.Tools, err = tool.NewRegistry(append(builtin.Tools(builtin.Options{}), asked...)...); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	h := taskdir.Home{
		User: filepath.Join(root, "user"), State: filepath.Join(root, "s"), Data: filepath.Join(root, "s"),
		Config: filepath.Join(root, "s"),
	}
	dir := filepath.Join(root, "w")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	task, err := Create(t.Context(), h, New{Request: "Go.", TaskOpened: op.TaskOpened{
		Task: "t", Dir: dir, Model: m.Name(), EAS: 8000, Encoding: "cl100k_base", Approval: "auto",
		System: "system", Tools: more,
	}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := task.Close(); err != nil {
			t.Error(err)
		}
	})
	return task, h
}

// TestLogLinesOfItsOwn lets the log seal itself in the middle of a turn, as it
// does when a model thinks for long: the seal takes a place in the order, and
// the task continues.
func TestLogLinesOfItsOwn(t *testing.T) {
	var task *Task
	first := true
	task, h := newTask(t, "turns:\n  - calls: [{name: Think, arguments: {thought: a}}]\n  - reply: Done.\n", Options{
		Callbacks: Callbacks{Delta: func(model.Delta) {
			if first {
				first = false
				if _, err := task.Ledger.Journal.Log().Append(context.Background(), opstream.Entry{Kind: string("log.sealed"), Body: []byte("{}")}); err != nil {
					t.Error(err)
				}
			}
		}},
	})
	out, err := task.Run(t.Context())
	if err != nil || out.Reason != "done" || out.Answer != "Done." {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	if first {
		t.Fatal("nothing was sealed")
	}
	st, err := taskdir.ReadState(h, "t")
	if err != nil {
		t.Fatal(err)
	}
	if st.Last < task.Ledger.State().Last ||
		string(optest.Render(st.Context.Chat())) != string(optest.Render(task.Ledger.State().Context.Chat())) {
		t.Error("the stream and the task's own state differ")
	}
}

// TestInterruptedStep cancels a turn while a command runs: every call gets a
// result, the world is saved, and a jump scheduled in that step is dropped.
func TestInterruptedStep(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	task, _ := newTask(t, `turns:
  - calls:
      - {name: jump_to_step, arguments: {step_id: 0, reason: r}}
      - {name: Bash, arguments: {command: "echo begun; echo x > x; cat /dev/zero > /dev/null"}}
      - {name: Bash, arguments: {command: "echo never"}}
  - reply: After.
`, Options{Callbacks: Callbacks{Op: func(o op.Op) {
		if _, ok := o.Body.(*op.ToolStarted); ok {
			cancel()
		}
	}}})
	out, err := task.Run(ctx)
	if err != nil || out.Reason != "interrupted" {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	st := task.Ledger.State()
	if st.Jump.Pending != nil || st.Totals.Jumps != 0 {
		t.Errorf("the jump of the interrupted step is still to come: %+v", st.Jump.Pending)
	}
	if st.Steps.Len() < 2 || !st.Steps.At(1).Ended || !st.Steps.At(1).Saved {
		t.Errorf("step 1 has no checkpoint: %+v", st.Steps)
	}
	text := string(optest.Render(st.Context.Chat()))
	for _, want := range []string{"Interrupted by the user while it ran", "Not run: the user interrupted", "The jump to step 0 was not made"} {
		if !strings.Contains(text, want) {
			t.Errorf("the model is not told %q:\n%s", want, text)
		}
	}
	if err := optest.CheckChat(st.Context.Chat()); err != nil {
		t.Error(err)
	}
	// The task continues in the same process, too.
	if err := task.Resume(t.Context(), "Go on.", &op.TaskResumed{}); err != nil {
		t.Fatal(err)
	}
	if out, err = task.Run(t.Context()); err != nil || out.Answer != "After." {
		t.Errorf("Run = %+v, %v", out, err)
	}
}

// TestRejectionSurvives refuses a call with a word to the model: the word is
// the user's, and a jump carries it over.
func TestRejectionSurvives(t *testing.T) {
	task, _ := newTask(t, `turns:
  - calls:
      - {name: Bash, arguments: {command: "echo hi"}}
  - expect:
      - {on: last, contains: "use tabs"}
    calls:
      - {name: jump_to_step, arguments: {step_id: 0, reason: r}}
  - expect:
      - {on: last, contains: ["What the user said", "(rejection): use tabs"]}
    reply: Done.
`, Options{Guards: Guards{Approval: "ask"}, Callbacks: Callbacks{Approve: func(context.Context, gate.Question) gate.Answer { return gate.Answer{Text: "use tabs"} }}})
	out, err := task.Run(t.Context())
	if err != nil || out.Reason != "done" {
		t.Fatalf("Run = %+v, %v", out, err)
	}
}

// TestJumpToLostWorld takes away what a checkpoint needs: the jump is not
// made, the model is shown why, and nothing else is lost.
func TestJumpToLostWorld(t *testing.T) {
	task, h := newTask(t, `turns:
  - calls:
      - {name: WriteFile, arguments: {path: a, content: one}}
  - calls:
      - {name: WriteFile, arguments: {path: a, content: two}}
  - calls:
      - {name: jump_to_step, arguments: {step_id: 1, reason: r}}
  - expect:
      - {on: last, contains: "The jump to step 1 was not made"}
    reply: Done.
`, Options{})
	var early []string
	task.opts.Callbacks.Op = func(o op.Op) {
		if _, ok := o.Body.(*op.WorldSaved); !ok {
			return
		}
		switch o.Step {
		case 1: // these hold all that step 1 needs
			early = globAll(t, filepath.Join(h.Store(task.Place.Dir), "objects", "pack", "*"))
		case 2:
			for _, f := range early {
				if err := os.Remove(f); err != nil {
					t.Error(err)
				}
			}
		}
	}
	out, err := task.Run(t.Context())
	if err != nil || out.Reason != "done" {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	if data, err := os.ReadFile(filepath.Join(task.Place.Dir, "a")); err != nil || string(data) != "two" {
		t.Errorf("the file is %q, %v", data, err)
	}
}

func globAll(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %q, %v", pattern, files, err)
	}
	return files
}

// TestFoldWordsAtTheEnd holds the order that loses words where the end of a
// turn is taken for the end of all that was said.
func TestFoldWordsAtTheEnd(t *testing.T) {
	s := optest.Fold(t, state.Fold, optest.Parse(t, `task.opened 0 {"task":"t"}
user.said 0 {"text":"go","source":"request"}
cards.recalled 0 {"why":"start"}
world.saved 0 {"commit":"c"}
model.asked 1 {"last_seq":4}
model.replied 1 {"text":"Done.","finish":"stop"}
world.saved 1 {"commit":"c"}
user.said 2 {"text":"one more thing","source":"steer"}
turn.ended 2 {"reason":"done"}
`))

	if act := state.Next(s, state.Limits{}); act.Kind != state.ActAsk {
		t.Errorf("Next = %+v, want to ask", act)
	}
}

// TestInterruptedAnswer: a turn whose answer has arrived is done, also when
// the user pressed Ctrl-C while its last step was saved.
func TestInterruptedAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	task, _ := newTask(t, "turns:\n  - reply: Done.\n", Options{Callbacks: Callbacks{Op: func(o op.Op) {
		if _, ok := o.Body.(*op.ModelReplied); ok {
			cancel()
		}
	}}})
	if out, err := task.Run(ctx); err != nil || out.Reason != "done" || out.Answer != "Done." {
		t.Errorf("Run = %+v, %v", out, err)
	}
}
