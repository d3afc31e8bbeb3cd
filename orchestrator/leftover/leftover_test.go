package leftover

import (
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/state/projection"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/workspace"
)

// open opens a task of a home, in the directory w of it, and records operations.
func open(t *testing.T, root, id string, parent *op.Parent, bodies ...op.Body) *workspace.Place {
	t.Helper()
	return gatetest.Open(t, root, op.TaskOpened{Task: id, Parent: parent}, bodies...)
}

func none(string) bool { return false }

// TestCloseUnknown: each call that began gets one result. Its outcome is unknown, but where an
// operation is all that the call does.
func TestCloseUnknown(t *testing.T) {
	calls := []op.Call{
		{ID: "c1", Name: "Bash", Args: `{"command":"make"}`}, {ID: "c2", Name: "jump_to_step", Args: `{"step_id":0}`},
		{ID: "c3", Name: "dmail", Args: `{}`}, {ID: "c4", Name: "Bash", Args: `{"command":"true"}`},
	}
	p := open(t, t.TempDir(), "t", nil, &op.ModelReplied{Calls: calls},
		&op.ToolCalled{Call: "c1", Name: "Bash", Args: calls[0].Args},
		&op.ToolCalled{Call: "c2", Name: "jump_to_step", Args: calls[1].Args}, &op.ToolCalled{Call: "c3", Name: "dmail",
			Args: calls[2].Args}, &op.ToolCalled{Call: "c4", Name: "Bash", Args: calls[3].Args},
		&op.OutputKept{Call: "c1", Text: "half of it"}, &op.JumpRequested{To: 0, By: op.ByAgent, Call: "c2"},
		&op.CheckpointMarked{Call: "c3"})
	l := New(p, none)
	next := state.Next(p.State(), state.Limits{})
	if next.Kind != state.ActCloseUnknown || len(next.Calls) != 4 {
		t.Fatalf("Next = %+v, want the four calls closed", next)
	}
	if err := l.CloseUnknown(t.Context(), next.Calls); err != nil {
		t.Fatal(err)
	}
	results := map[string]*op.ToolReturned{}
	last, _ := p.Journal.Log().Last()
	ops, err := p.Ops(op.Range{First: 1, Last: last})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range ops {
		if b, ok := o.Body.(*op.ToolReturned); ok {
			results[b.Call] = b
		}
	}
	if r := results["c1"]; r == nil || !r.Unknown || !r.IsError || len(r.Kept) != 1 ||
		!strings.HasPrefix(r.Text, projection.UnknownResult) || !strings.Contains(r.Text, "recall opens op") {
		t.Errorf("the command's result: %+v", r)
	}
	if r := results["c2"]; r == nil || r.Unknown || r.IsError || r.Text != "Jump to step 0 scheduled." {
		t.Errorf("the jump's result: %+v", r)
	}
	if r := results["c4"]; r == nil || !r.Unknown || !r.IsError || len(r.Kept) > 0 ||
		r.Text != projection.UnknownResult {
		t.Errorf("the result of a command without output: %+v", r)
	}
	if r := results["c3"]; r == nil || r.Unknown || r.Text != tool.CheckpointCreated(0) {
		t.Errorf("the checkpoint's result: %+v", r)
	}
	if next = state.Next(p.State(), state.Limits{}); next.Kind != state.ActSaveWorld {
		t.Errorf("then Next = %+v, want the step to end", next)
	}
}

// TestLostSubagents: a subagent that was at work is closed with what it used, also where its
// beginning was not recorded. One that this process runs stays.
func TestLostSubagents(t *testing.T) {
	root := t.TempDir()
	call := op.Call{ID: "c1", Name: "Task", Args: `{}`}
	other := op.Call{ID: "c2", Name: "Task", Args: `{}`}
	child := open(t, root, taskdir.SubagentID("t", 1), &op.Parent{Task: "t", Call: "c1", Agent: "explore"},
		&op.ModelReplied{Usage: op.Usage{Prompt: 70}})
	if err := child.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	mine := taskdir.SubagentID("t", 2)
	p := open(t, root, "t", nil, &op.ModelReplied{Calls: []op.Call{call, other}},
		&op.ToolCalled{Call: "c1", Name: call.Name, Args: "{}"},
		&op.SubagentStarted{Call: "c2", Task: mine, Agent: "explore"})
	if err := New(p, func(task string) bool { return task == mine }).CloseSubagents(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := p.State()
	if len(s.Subagents) != 2 {
		t.Fatalf("%d subagents are known, want 2", len(s.Subagents))
	}
	for _, c := range s.Subagents {
		lost := c.Task != mine
		if c.Running == lost || lost && c.Reason != reasonLost {
			t.Errorf("subagent %+v", c)
		}
	}
	if s.Totals.Usage.Prompt != 70 {
		t.Errorf("counted usage %+v", s.Totals.Usage)
	}
	if text := lostWith(s, "c1"); !strings.Contains(text, `resume "`+taskdir.SubagentID("t", 1)+`"`) ||
		lostWith(s, "c2") != "" {
		t.Errorf("the model is told %q, and of the other %q", text, lostWith(s, "c2"))
	}
}
