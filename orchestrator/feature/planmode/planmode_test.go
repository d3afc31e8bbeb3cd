package planmode_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/planmode"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/tool"
)

func TestMain(m *testing.M) {
	guard.SuperviseMain() // this binary also supervises commands
	os.Exit(m.Run())
}

// TestCheck: while a task only plans, what is not known to change nothing is refused, and the refusal says what to do.
func TestCheck(t *testing.T) {
	on := true
	check := planmode.Check(func() bool { return on }, "TaskStop")
	for _, tt := range []struct {
		name    string
		spec    tool.Spec
		args    string
		refused string // a part of why; empty: it runs
	}{
		{"ReadFile", tool.Spec{ReadOnly: true}, `{}`, ""},
		{"FetchURL", tool.Spec{Fetches: true}, `{}`, ""},
		{"Task", tool.Spec{Delegates: true, ReadOnly: true}, `{}`, ""},
		{"Bash", tool.Spec{Command: "command"}, `{"command":"git log | head"}`, ""},
		{"mcp__a__marked", tool.Spec{ReadOnly: true}, `{}`, ""},
		{"Bash", tool.Spec{Command: "command"}, `{"command":"make"}`, "not known to change nothing"},
		{"Bash", tool.Spec{Command: "command"}, `{}`, "not known to change nothing"},
		{"WriteFile", tool.Spec{Edits: true}, `{}`, "can change something"},
		{"mcp__a__b", tool.Spec{}, `{}`, "can change something"},
		{"Task", tool.Spec{Delegates: true}, `{}`, "use a read-only one"},
		{"jump_to_step", tool.Spec{ReadOnly: true, Rewinds: true}, `{}`, "may move files"},
		{"TaskStop", tool.Spec{ReadOnly: true}, `{}`, "ends a command"},
	} {
		c := &gate.Call{Call: op.Call{ID: "c", Name: tt.name, Args: tt.args}, Spec: tt.spec, Input: []byte(tt.args)}
		got, err := check(t.Context(), c)
		if err != nil || (got == nil) != (tt.refused == "") {
			t.Fatalf("%s %s: %v, %v", tt.name, tt.args, got, err)
		}
		if got == nil {
			continue
		}
		d, r := got[0].(*op.ApprovalDecided), got[1].(*op.ToolReturned)
		if d.By != planmode.By || !r.Refused || !strings.Contains(r.Text, tt.refused) ||
			!strings.Contains(r.Text, "end your turn with the plan") {
			t.Errorf("%s: %+v, %+v", tt.name, d, r)
		}
	}
	on = false
	if got, _ := check(t.Context(), &gate.Call{Spec: tool.Spec{Edits: true}}); got != nil {
		t.Errorf("outside plan mode: %v", got)
	}
}

// TestOn: the mode holds from its operation on, folded or not.
func TestOn(t *testing.T) {
	p := gatetest.Place(t, op.TaskOpened{}, op.Call{ID: "c", Name: "Bash"})
	if planmode.On(p.Ledger) {
		t.Error("a task begins in plan mode")
	}
	for _, plan := range []bool{true, false, true} {
		if err := p.Journal.Post(t.Context(), planmode.Set(!plan, plan, "edits")); err != nil {
			t.Fatal(err)
		}
		if planmode.On(p.Ledger) != plan {
			t.Errorf("plan mode before it is folded: %v", !plan)
		}
	}
	if err := p.ApplyQueued(); err != nil {
		t.Fatal(err)
	}
	if g := p.State().Grants; !planmode.On(p.Ledger) || !g.Plan || g.Mode != "edits" {
		t.Errorf("folded: %+v", g)
	}
	if b := planmode.Set(true, true, "ask"); b.Notice != "" {
		t.Errorf("the model is told of a change of the approval alone: %q", b.Notice)
	}
}

// TestConfine: while a task only plans, commands cannot write in the directory, and one that only shows files of the
// directory needs no approval, unless it may show secrets. Where the network is not held back, every command does.
func TestConfine(t *testing.T) {
	dir := t.TempDir()
	box, err := guard.NewSandbox(t.Context(),
		guard.SandboxOptions{World: dir, Confine: guard.ConfineWorld, Cache: t.TempDir(), Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	on := true
	confine := planmode.Confine(func() bool { return on })
	pass := func(command string, box *guard.Sandbox) *gate.Call {
		t.Helper()
		args := fmt.Sprintf(`{"command":%q}`, command)
		c := &gate.Call{Spec: tool.Spec{Command: "command"}, Input: []byte(args),
			Env: &tool.Env{Dir: dir, Sandbox: box}}
		if got, err := confine(t.Context(), c); got != nil || err != nil {
			t.Fatalf("%q: %v, %v", command, got, err)
		}
		return c
	}
	for command, reads := range map[string]bool{"cat a": true, "ls | head -3": true, "": false, "cat .env": false, "cat /etc/passwd": false, "curl https://x.example": false} {
		c := pass(command, box)
		if c.Reads != (reads && box.HoldsNetwork()) || c.Env.Sandbox == box {
			t.Errorf("%q only shows files: %v; the same sandbox: %v", command, c.Reads, c.Env.Sandbox == box)
		}
		if c := pass(command, nil); c.Reads || c.Env.Sandbox != nil {
			t.Errorf("%q without a sandbox only shows files: %v", command, c.Reads)
		}
		if c := pass(command, box.WithNetwork()); c.Reads {
			t.Errorf("%q with the network only shows files", command)
		}
	}
	on = false
	if c := pass("cat a", box); c.Reads || c.Env.Sandbox != box {
		t.Errorf("outside plan mode: %+v", c)
	}
}
