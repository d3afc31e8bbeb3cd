package runtime

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/jobs"
	"anamnesis/orchestrator/optest"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
)

// waits is a job that prints its name and runs until it is ended.
func waits(name string) tool.JobStart {
	return tool.JobStart{Call: "c", Command: name, Timeout: time.Hour,
		Run: func(ctx context.Context, out io.Writer, started func(op.ToolStarted) error) (tool.JobEnd, error) {
			if err := started(op.ToolStarted{}); err != nil {
				return tool.JobEnd{}, err
			}
			_, _ = io.WriteString(out, name)
			<-ctx.Done()
			return tool.JobEnd{Exit: 143}, ctx.Err()
		}}
}

func TestJobLimits(t *testing.T) {
	task, _ := newTask(t, "turns: []", Options{})
	for range jobs.Max {
		if _, err := task.features.jobs.Begin(t.Context(), waits("x")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := task.features.jobs.Begin(t.Context(), waits("x")); err == nil || !strings.Contains(err.Error(), "TaskStop") {
		t.Errorf("one too many: %v", err)
	}
	if j, err := task.features.jobs.Stop("bg_3", jobs.Stopped); err != nil || j.Why != jobs.Stopped {
		t.Fatalf("stop: %+v, %v", j, err)
	}
	id, err := task.features.jobs.Begin(t.Context(), waits("x"))
	if err != nil || id != "bg_17" {
		t.Errorf("after one was ended: %s, %v", id, err)
	}
	if err := task.Ledger.ApplyQueued(); err != nil || len(task.Ledger.State().Jobs.Running) != jobs.Max ||
		task.Ledger.State().Jobs.Begun != jobs.Max+1 {
		t.Errorf("the state has %d of %d: %v", len(task.Ledger.State().Jobs.Running),
			task.Ledger.State().Jobs.Begun, err)
	}
}

// A command that cannot begin is no job, and its reason comes back.
func TestJobThatCannotBegin(t *testing.T) {
	task, _ := newTask(t, "turns: []", Options{})
	want := errors.New("no such program")
	s := tool.JobStart{Run: func(context.Context, io.Writer, func(op.ToolStarted) error) (tool.JobEnd, error) {
		return tool.JobEnd{}, want
	}}
	if _, err := task.features.jobs.Begin(t.Context(), s); !errors.Is(err, want) {
		t.Errorf("err %v", err)
	}
	if err := task.Ledger.ApplyQueued(); err != nil ||
		strings.Contains(task.Ledger.State().Context.Chat()[0].Text, "[background") {
		t.Errorf("the model is told of it: %v", err)
	}
	if l, err := task.features.jobs.List(); err != nil || len(l) != 0 {
		t.Errorf("jobs %v", l)
	}
}

// Output is kept up to a limit; the rest is counted, and said.
func TestJobOutput(t *testing.T) {
	task, _ := newTask(t, "turns: []", Options{})
	s := waits("")
	run := s.Run
	s.Run = func(ctx context.Context, out io.Writer, started func(op.ToolStarted) error) (tool.JobEnd, error) {
		block := []byte(strings.Repeat("0123456789abcdef", 1<<16)) // 1 MiB
		for range jobs.MaxBytes>>20 + 1 {
			if n, err := out.Write(block); n != len(block) || err != nil {
				t.Errorf("wrote %d: %v", n, err)
			}
		}
		return run(ctx, out, started)
	}
	id, err := task.features.jobs.Begin(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		from int64
		n    int
		want string
		next int64
	}{
		{0, 4, "0123", 4}, {-4, 100, "cdef", jobs.MaxBytes}, {jobs.MaxBytes + 5, 10, "", jobs.MaxBytes},
		{-1 << 40, 2, "01", 2},
	} {
		out, err := task.features.jobs.Output(id, tc.from, tc.n)
		if err != nil || out.Text != tc.want || out.Next != tc.next || out.Dropped != 1<<20 {
			t.Errorf("from %d: %q, next %d, dropped %d, %v", tc.from, out.Text, out.Next, out.Dropped, err)
		}
	}
}

// What an earlier process began is booked as ended, once, and the model is shown.
func TestLostJobs(t *testing.T) {
	task, _ := newTask(t, "turns: []", Options{})
	if err := task.Ledger.Record(t.Context(), &op.JobStarted{Job: "bg_9", Command: "serve"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := task.features.jobs.CloseLost(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	told := 0
	for _, m := range task.Ledger.State().Context.Chat() {
		told += strings.Count(m.Text,
			"[background "+task.Ledger.State().Opened.Mark+"] bg_9 (serve) was ended when the program stopped")
	}
	if told != 1 || task.Ledger.State().Jobs.Running != nil {
		t.Errorf("told %d times, jobs %v", told, task.Ledger.State().Jobs.Running)
	}
}

// A jump that cannot be made ends nothing; one that fails after it ended
// something says what.
func TestDroppedJumpAndJobs(t *testing.T) {
	for name, tc := range map[string]struct {
		late bool // the directory goes when the job ends
		want string
	}{
		"before anything ends": {false, ""},
		"after it":             {true, "ended for it all the same: bg_1 (sleep 1000)"},
	} {
		t.Run(name, func(t *testing.T) {
			task, _ := newTask(t, `turns:
  - calls: [{name: Bash, arguments: {command: sleep 1000, run_in_background: true}}]
  - reply: It runs.
`, Options{})
			if out, err := task.Run(t.Context()); err != nil || out.Reason != "done" {
				t.Fatalf("%+v, %v", out, err)
			}
			noDirectory := func() { // a file stands in its place
				if err := errors.Join(os.RemoveAll(task.Place.Dir), os.WriteFile(task.Place.Dir, nil, 0o644)); err != nil {
					t.Error(err)
				}
			}
			task.opts.Callbacks.Op = func(o op.Op) {
				if _, ok := o.Body.(*op.JobEnded); ok && tc.late {
					noDirectory()
				}
			}
			if !tc.late {
				noDirectory()
			}
			_, err := task.JumpNow(t.Context(), op.JumpRequested{To: 0}, &op.TaskResumed{})
			if !errors.Is(err, state.ErrNotJumped) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the jump: %v, want %q", err, tc.want)
			}
			list, err := task.features.jobs.List()
			if err != nil || len(list) != 1 || (list[0].Why == jobs.ByJump) != tc.late {
				t.Errorf("jobs %+v, %v", list, err)
			}
			if text := string(optest.Render(task.Ledger.State().Context.Chat())); !strings.Contains(text, tc.want) {
				t.Errorf("the model is not told:\n%s", text)
			}
		})
	}
}
