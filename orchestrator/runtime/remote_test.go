package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/model/script"
	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
)

// bucketTask creates a task that a bucket keeps, with the model's words and further tools. renewed stands for what
// moves the deadline of its commands on.
func bucketTask(t *testing.T, words string, opened op.TaskOpened, opts Options,
	renewed func(*guard.Deadline, time.Duration), more ...tool.Tool,
) (*Task, bucket.Bucket) {
	t.Helper()
	root := t.TempDir()
	state := filepath.Join(root, "s")
	h := taskdir.Home{User: filepath.Join(root, "user"), State: state, Data: state, Config: state}
	for _, dir := range []string{h.Task("t"), filepath.Join(root, "w"), filepath.Join(root, "bucket")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m, err := script.Parse([]byte(words))
	if err != nil {
		t.Fatal(err)
	}
	b, err := bucket.Open(filepath.Join(root, "bucket"), nil, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	if opts.Store.Deadline, err = guard.NewDeadline(filepath.Join(root, "deadline")); err != nil {
		t.Fatal(err)
	}
	if opts.Store.Replica, err = replica.Hold(t.Context(), b, replica.Cursor{Task: "t"}, replica.Options{
		Home: h, Lease: 4 * time.Second, Renewed: func(left time.Duration) { renewed(opts.Store.Deadline, left) },
	}); err != nil {
		t.Fatal(err)
	}
	opts.Model = m
	opts.Tools, err = tool.NewRegistry(append(builtin.Tools(builtin.Options{}), more...)...)
	if err != nil {
		t.Fatal(err)
	}
	opened.Task, opened.Dir, opened.Model = "t", filepath.Join(root, "w"), m.Name()
	opened.EAS, opened.Encoding, opened.Approval, opened.System = 8000, "cl100k_base", "auto", "system"
	task, err := Create(t.Context(), h, New{Request: "Go.", TaskOpened: opened}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(task.Close(), opts.Store.Replica.Close(context.Background()), opts.Store.Deadline.Close()); err != nil {
			t.Error(err)
		}
	})
	return task, b
}

// effect is a tool that changes something, and calls do before it does.
type effect struct {
	named
	do func()
}

func (e effect) Call(context.Context, *tool.Env, json.RawMessage) (tool.Result, error) {
	e.do()
	return tool.Textf("done"), nil
}

// kept returns the kinds of the operations of task t that a bucket has, read as another machine reads them.
func kept(t *testing.T, b bucket.Bucket) string {
	t.Helper()
	h := taskdir.Home{State: t.TempDir()}
	if err := os.MkdirAll(filepath.Dir(h.Task("t")), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := replica.Pull(t.Context(), b, h, "t"); err != nil {
		t.Error(err)
		return ""
	}
	var kinds []string
	if err := taskdir.EachOp(h, "t", func(o op.Op) error {
		kinds = append(kinds, string(o.Body.Kind()))
		return nil
	}); err != nil {
		t.Error(err)
	}
	return strings.Join(kinds, " ")
}

// What another machine must know of is in the bucket before it happens: the call before its effect, the jump before
// the files move, and the end of the turn before the turn is said to have ended.
func TestBarriers(t *testing.T) {
	var b bucket.Bucket
	var before, moving string
	opts := Options{Callbacks: Callbacks{Op: func(o op.Op) {
		if _, ok := o.Body.(*op.JumpDone); ok {
			moving = kept(t, b)
		}
	}}}
	task, remote := bucketTask(t, `turns:
  - calls: [{name: Change}]
  - calls: [{name: Bash, arguments: {command: "echo x > x"}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 1, reason: r}}]
  - reply: Done.
`, op.TaskOpened{}, opts, func(d *guard.Deadline, left time.Duration) { _ = d.Set(left) },
		effect{named{name: "Change"}, func() { before = kept(t, b) }})
	b = remote
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "done" {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	if !strings.HasSuffix(before, " "+string(new(op.ToolCalled).Kind())) {
		t.Errorf("before the effect the bucket has %s", before)
	}
	if !strings.Contains(moving, " "+string(op.KindJumpIntended)) {
		t.Errorf("when the files have moved the bucket has %s", moving)
	}
	if after := kept(t, b); !strings.HasSuffix(after, " "+string(new(op.TurnEnded).Kind())) {
		t.Errorf("after the turn the bucket has %s", after)
	}
}

// A check runs once the bucket has the task, and again if it was ended because the bucket could not be reached: what
// ended it says nothing of the files.
func TestCheckInTime(t *testing.T) {
	overdue := 1 // sendings
	task, _ := bucketTask(t, "turns:\n  - reply: Done.\n",
		op.TaskOpened{Goal: &op.Goal{Until: []string{"sleep 0.6"}}}, Options{},
		func(d *guard.Deadline, left time.Duration) {
			if overdue--; overdue >= 0 {
				left = 0
			}
			_ = d.Set(left)
		})
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "done" {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	runs := task.Ledger.State().Goal.Runs
	for i, r := range runs {
		if !r.Passed {
			t.Errorf("check %d of %d failed: %+v", i+1, len(runs), r)
		}
	}
}
