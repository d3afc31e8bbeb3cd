package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/optest"
	"anamnesis/orchestrator/state"
)

// The faults of other programs' D-Mails and rewinds; docs/guides/dmail.md lists them
// with their tests.

// mailed runs a task whose agent has both D-Mail tools, to its end. Where in is
// given, the task is there before it runs.
func mailed(t *testing.T, words string, opts Options, in ...**Task) *Task {
	t.Helper()
	task, _ := newTask(t, words, opts, "SendDMail", "dmail")
	for _, p := range in {
		*p = task
	}
	out, err := task.Run(t.Context())
	if err != nil || out.Reason != "done" || out.Answer != "Done." {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	if err := optest.CheckChat(task.Ledger.State().Context.Chat()); err != nil {
		t.Error(err)
	}
	return task
}

// TestMailToTheBeginning: checkpoint 0 comes after the request.
func TestMailToTheBeginning(t *testing.T) {
	mailed(t, `turns:
  - calls: [{name: Think, arguments: {thought: a long thought}}]
  - calls: [{name: SendDMail, arguments: {checkpoint_id: 0, message: nothing there}}]
  - expect:
      - {on: all-joined, contains: ["Go.", "[step 0] CHECKPOINT 0", "nothing there"], lacks: "a long thought"}
    reply: Done.
`, Options{})
}

// TestMailKeepsRejection: the word that came with a refusal in the same reply is
// the user's, and so is what was said while the step ran.
func TestMailKeepsRejection(t *testing.T) {
	var task *Task
	mailed(t, `turns:
  - calls:
      - {name: Bash, arguments: {command: "echo hi"}}
      - {name: SendDMail, arguments: {checkpoint_id: 0, message: I tried to say hi}}
  - expect:
      - {on: last, contains: ["I tried to say hi", "(rejection): use tabs", "(steer): and be quick"]}
      - {on: all-joined, lacks: ["echo hi", "If you can read this"]}
    reply: Done.
`, Options{Guards: Guards{Approval: "ask"}, Callbacks: Callbacks{Approve: func(ctx context.Context, _ gate.Question) gate.Answer {
		if err := task.Ledger.Say(ctx, "and be quick", op.SourceSteer); err != nil {
			t.Error(err)
		}
		return gate.Answer{Text: "use tabs"}
	}}}, &task)
}

// TestMailKeepsSteering: what a user said after the checkpoint stays, also when
// a second D-Mail goes further back and a jump discards it all, and stands there
// once.
func TestMailKeepsSteering(t *testing.T) {
	var task *Task
	said := 0
	task = mailed(t, `turns:
  - reply: I think.
    calls: [{name: Think, arguments: {thought: one}}]
  - reply: I write.
    calls: [{name: SendDMail, arguments: {checkpoint_id: 1, message: first mail}}]
  - expect: [{on: last, contains: ["first mail", "(steer): word 1"]}]
    reply: I write again.
    calls: [{name: SendDMail, arguments: {checkpoint_id: 0, message: second mail}}]
  - expect: [{on: all-joined, contains: ["second mail", "(steer): word 0", "word 1", "(steer): word 2"], lacks: "first mail"}]
    calls: [{name: jump_to_step, arguments: {step_id: 0, reason: r}}]
  - reply: Done.
`, Options{Callbacks: Callbacks{Delta: func(d model.Delta) {
		if strings.HasPrefix(d.Text, "I ") {
			if err := task.Ledger.Say(context.Background(), fmt.Sprintf("word %d", said), op.SourceSteer); err != nil {
				t.Error(err)
			}
			said++
		}
	}}}, &task)
	text := string(optest.Render(task.Ledger.State().Context.Chat()))
	for i := range 3 {
		if n := strings.Count(text, fmt.Sprintf("word %d", i)); n != 1 {
			t.Errorf("word %d stands there %d times:\n%s", i, n, text)
		}
	}
}

// TestMailOfCancelledStep: a D-Mail belongs to its step. Cut short, it is
// dropped, and the next turn does not send it.
func TestMailOfCancelledStep(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	task, _ := newTask(t, `turns:
  - calls:
      - {name: SendDMail, arguments: {checkpoint_id: 0, message: too late}}
      - {name: Bash, arguments: {command: "cat /dev/zero > /dev/null"}}
  - expect:
      - {on: last, contains: ["The D-Mail to checkpoint 0 was not sent: the step was interrupted.", "Go on."]}
      - {on: all-joined, contains: ["If you can read this, the D-Mail was not sent"], lacks: "[D-Mail from future self]"}
    reply: Done.
`, Options{Callbacks: Callbacks{Op: func(o op.Op) {
		if _, ok := o.Body.(*op.ToolStarted); ok {
			cancel()
		}
	}}}, "SendDMail")
	if out, err := task.Run(ctx); err != nil || out.Reason != "interrupted" {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	if err := task.Resume(t.Context(), "Go on.", &op.TaskResumed{}); err != nil {
		t.Fatal(err)
	}
	if out, err := task.Run(t.Context()); err != nil || out.Answer != "Done." || task.Ledger.State().Totals.Mails != 0 {
		t.Errorf("Run = %+v, %v with %d D-Mails", out, err, task.Ledger.State().Totals.Mails)
	}
}

// TestMailIDsGoOn: no D-Mail or jump makes a step's or a checkpoint's number come
// again, and the turn's budget continues as well.
func TestMailIDsGoOn(t *testing.T) {
	task := mailed(t, `turns:
  - calls: [{name: dmail, arguments: {action: checkpoint}}]
  - calls: [{name: SendDMail, arguments: {checkpoint_id: 0, message: one}}]
  - expect: [{on: last, contains: "Later checkpoints are still there and can be sent to: 1-2."}]
    calls: [{name: dmail, arguments: {action: checkpoint}}]
  - expect: [{on: result, contains: ["Checkpoint 1 created", "CHECKPOINT 3"]}]
    calls: [{name: jump_to_step, arguments: {step_id: 1, reason: r}}]
  - calls: [{name: dmail, arguments: {action: checkpoint}}]
  - expect: [{on: result, contains: ["Checkpoint 2 created", "CHECKPOINT 5"]}]
    reply: Done.
`, Options{})
	if st := task.Ledger.State(); st.Turn.Steps != 6 || st.Steps.Len() != 8 {
		t.Errorf("%d steps of the turn, %d in all: the count began anew", st.Turn.Steps, st.Steps.Len())
	}
}

// TestRetriedReplyRunsOnce: a reply that was cut off and is asked for again runs
// its calls once, and sends its D-Mail once.
func TestRetriedReplyRunsOnce(t *testing.T) {
	task, _ := newTask(t, `turns:
  - reply: I write the log and say so.
    calls:
      - {name: Bash, arguments: {command: "echo ran >> log"}}
      - {name: SendDMail, arguments: {checkpoint_id: 0, message: the log is written}}
    fault: {cut: 9}
  - expect: [{on: all-joined, contains: the log is written}]
    reply: Done.
`, Options{}, "SendDMail")
	asked := 0
	task.opts.Model = model.Retry(task.opts.Model, &model.RetryOptions{
		Sleep: func(context.Context, time.Duration) error { asked++; return nil },
	})
	if out, err := task.Run(t.Context()); err != nil || out.Answer != "Done." {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	data, err := os.ReadFile(filepath.Join(task.Place.Dir, "log"))
	if err != nil || string(data) != "ran\n" || asked != 1 || task.Ledger.State().Totals.Mails != 1 {
		t.Errorf("log holds %q, %v; asked again %d times, %d D-Mails; want one of each", data, err, asked,
			task.Ledger.State().Totals.Mails)
	}
}

// TestMailLoop: D-Mails to one checkpoint are jumps back to it. The fourth asks
// for a strategy first, and without one the turn ends as stuck, long before
// its steps are used up.
func TestMailLoop(t *testing.T) {
	words := "turns:\n" +
		strings.Repeat("  - calls: [{name: SendDMail, arguments: {checkpoint_id: 0, message: try again}}]\n", 20)
	task, _ := newTask(t, words, Options{}, "SendDMail")
	out, err := task.Run(t.Context())
	if err != nil || out.Reason != "stuck" || !strings.Contains(out.Detail, "back to step 0 did not help") {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	if st := task.Ledger.State(); st.Totals.Mails != state.MaxBackwardJumps ||
		st.Steps.CountEnded() != state.MaxBackwardJumps+1 {
		t.Errorf("%d D-Mails in %d steps; want the guard before number %d", st.Totals.Mails, st.Steps.CountEnded(),
			state.MaxBackwardJumps+1)
	}
	// What a user says restarts the count.
	if err := task.Resume(t.Context(), "Go on.", &op.TaskResumed{}); err != nil {
		t.Fatal(err)
	}
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "stuck" ||
		task.Ledger.State().Totals.Mails != 2*state.MaxBackwardJumps {
		t.Errorf("Run = %+v, %v after %d D-Mails", out, err, task.Ledger.State().Totals.Mails)
	}
}

// TestMailLoopWithJumps: jumps and D-Mails to one step count together, and a
// D-Mail goes back also where the current path does not lead through its step.
func TestMailLoopWithJumps(t *testing.T) {
	const (
		jump = "  - calls: [{name: jump_to_step, arguments: {step_id: %d, reason: r}}]\n"
		mail = "  - calls: [{name: SendDMail, arguments: {checkpoint_id: %d, message: m}}]\n"
	)
	tests := []struct {
		name, words  string
		jumps, mails int
		to           int
	}{
		{"both to one step", fmt.Sprintf(mail+jump+mail+mail, 0, 0, 0, 0), 1, 2, 0},
		{"to a step that a jump has left", fmt.Sprintf(mail+jump+mail+mail+mail+mail, 0, 0, 1, 1, 1, 1), 1, 4, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			task, _ := newTask(t, "turns:\n"+tt.words, Options{}, "SendDMail")
			out, err := task.Run(t.Context())
			if err != nil || out.Reason != "stuck" ||
				!strings.Contains(out.Detail, fmt.Sprintf("back to step %d did not help", tt.to)) {
				t.Fatalf("Run = %+v, %v", out, err)
			}
			if got := task.Ledger.State().Totals; got.Jumps != tt.jumps || got.Mails != tt.mails {
				t.Errorf("%d jumps and %d D-Mails, want %d and %d", got.Jumps, got.Mails, tt.jumps, tt.mails)
			}
		})
	}
}

// TestMailLoopToNewCheckpoints: a loop that goes to another checkpoint each time
// ends with the turn's steps: nothing sets their count back.
func TestMailLoopToNewCheckpoints(t *testing.T) {
	var words strings.Builder
	words.WriteString("turns:\n")
	for i := range 20 {
		fmt.Fprintf(&words, "  - calls: [{name: SendDMail, arguments: {checkpoint_id: %d, message: try again}}]\n", i)
	}
	task, _ := newTask(t, words.String(), Options{Limits: state.Limits{Limits: op.Limits{Steps: 8}}}, "SendDMail")
	out, err := task.Run(t.Context())
	if err != nil || out.Reason != "limit" || task.Ledger.State().Totals.Mails != 8 {
		t.Errorf("Run = %+v, %v after %d D-Mails; want the limit after 8", out, err, task.Ledger.State().Totals.Mails)
	}
}

// TestMailCountsMessages: the record says how many messages went, and the
// context holds as many fewer, the D-Mail itself apart.
func TestMailCountsMessages(t *testing.T) {
	var before, after, removed int
	var task *Task
	task = mailed(t, `turns:
  - calls: [{name: Think, arguments: {thought: one}}, {name: Think, arguments: {thought: two}}]
  - calls: [{name: Think, arguments: {thought: three}}]
  - calls: [{name: dmail, arguments: {action: checkpoint}}]
  - calls: [{name: SendDMail, arguments: {checkpoint_id: 0, message: m}}]
  - reply: Done.
`, Options{Callbacks: Callbacks{Op: func(o op.Op) {
		switch b := o.Body.(type) {
		case *op.PassDone:
			removed, before = b.MessagesRemoved, len(task.Ledger.State().Context.Chat())
		case *op.ModelAsked:
			after = len(task.Ledger.State().Context.Chat())
		}
	}}}, &task)
	// The message itself merges with the mark of step 0.
	if removed != 9 || before-after != removed {
		t.Errorf("%d messages removed, the context went from %d to %d", removed, before, after)
	}
}

// TestMailAnswersEveryCall: the calls beside a D-Mail have their results, in the
// record and in what is left of the context, also those that read at once and
// a second D-Mail, which is not sent.
func TestMailAnswersEveryCall(t *testing.T) {
	task := mailed(t, `turns:
  - calls:
      - {name: SendDMail, arguments: {checkpoint_id: 0, message: first}}
      - {name: Bash, arguments: {command: "echo after > file"}}
      - {name: SendDMail, arguments: {checkpoint_id: 0, message: second}}
      - {name: jump_to_step, arguments: {step_id: 0, reason: r}}
  - expect: [{on: all-joined, contains: [first, file], lacks: [second, "echo after"]}]
    reply: Done.
`, Options{})
	ops, err := task.Ledger.Ops(op.Range{First: 1, Last: task.Ledger.State().Last})
	if err != nil {
		t.Fatal(err)
	}
	open, refused := make(map[string]bool), 0
	for _, o := range ops {
		switch b := o.Body.(type) {
		case *op.ModelReplied:
			for _, c := range b.Calls {
				open[c.ID] = true
			}
		case *op.ToolReturned:
			if !open[b.Call] {
				t.Errorf("%s has a result and is not open", b.Call)
			}
			delete(open, b.Call)
			if b.IsError &&
				strings.Contains(b.Text,
					"a message is scheduled already; one step makes one jump or sends one D-Mail") {
				refused++
			}
		}
	}
	if len(open) > 0 || refused != 2 {
		t.Errorf("calls without a result: %v; %d of 2 were refused for the pending one", open, refused)
	}
}
