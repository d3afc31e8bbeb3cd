package runtime

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model/script"
	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
)

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
	m, err := script.Parse([]byte(`turns:
  - calls: [{name: Change}]
  - calls: [{name: Bash, arguments: {command: "echo x > x"}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 1, reason: r}}]
  - reply: Done.
`))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	h := taskdir.Home{User: filepath.Join(root, "user"), State: filepath.Join(root, "s"), Data: filepath.Join(root, "s"), Config: filepath.Join(root, "s")}
	for _, dir := range []string{h.Task("t"), filepath.Join(root, "w"), filepath.Join(root, "bucket")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b, err := bucket.Open(filepath.Join(root, "bucket"), nil, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	holder, err := replica.Hold(t.Context(), b, replica.Cursor{Task: "t"}, replica.Options{Home: h})
	if err != nil {
		t.Fatal(err)
	}
	var before, moving string
	tools, err := tool.NewRegistry(append(builtin.Tools(builtin.Options{}), effect{named{name: "Change"}, func() { before = kept(t, b) }})...)
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{Model: m, Tools: tools, Store: Store{Replica: holder}}
	opts.Callbacks.Op = func(o op.Op) {
		if _, ok := o.Body.(*op.JumpDone); ok {
			moving = kept(t, b)
		}
	}
	task, err := Create(t.Context(), h, New{Request: "Go.", TaskOpened: op.TaskOpened{
		Task: "t", Dir: filepath.Join(root, "w"), Model: m.Name(), EAS: 8000, Encoding: "cl100k_base", Approval: "auto", System: "system",
	}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer task.Close()
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
	if err := holder.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
