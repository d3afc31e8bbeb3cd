package gate_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/orchestrator/tool/shell"
	"anamnesis/orchestrator/toolset"
	"anamnesis/orchestrator/workspace"
)

// newGate returns the gate of a task whose model has just replied with some calls.
func newGate(t *testing.T, o gate.Options, opened op.TaskOpened, calls ...op.Call) *approver {
	t.Helper()
	tools := gatetest.Tools(t, shell.Bash(), file.ReadFile(nil), file.WriteFile())
	o.Tools = func() *tool.Registry { return tools.Registry }
	place := gatetest.Place(t, opened, calls...)
	return &approver{gate: gate.New(place, o), place: place, tools: tools}
}

// approver is a gate with what its task has.
type approver struct {
	gate  *gate.Gate
	place *workspace.Place
	tools *toolset.Set
}

// verdict is what became of a call.
type verdict struct {
	Run    bool
	Why    string // of a refusal: shown to the model
	Args   string // as edited by the user
	Record []op.Body
}

// approve decides on a call, and records what the decision is.
func approve(t *testing.T, a *approver, oc op.Call) (v verdict) {
	t.Helper()
	c := gatetest.Call(t, a.tools, oc)
	last := a.place.State().Last
	for _, check := range []gate.Check{a.gate.CheckRules, a.gate.AskUser} {
		refusal, err := check(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if refusal != nil {
			n := len(refusal) - 1
			v.Why, v.Record = refusal[n].(*op.ToolReturned).Text, refusal[:n]
			if err := a.place.Record(t.Context(), v.Record...); err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	if v.Args = c.Edited; v.Args != "" {
		if err := a.place.ApplyQueued(); err != nil {
			t.Fatal(err)
		}
		ops, err := a.place.Ops(op.Range{First: last + 1, Last: a.place.State().Last})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range ops {
			v.Record = append(v.Record, o.Body)
		}
		return v
	}
	v.Run, v.Record = true, c.Record
	if len(v.Record) > 0 {
		if err := a.place.Record(t.Context(), v.Record...); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func bash(id, command string) op.Call {
	args, _ := json.Marshal(map[string]string{"command": command})
	return op.Call{ID: id, Name: "Bash", Args: string(args)}
}

// decided returns the decision a verdict records.
func decided(v verdict) op.ApprovalDecided {
	for _, b := range v.Record {
		if d, ok := b.(*op.ApprovalDecided); ok {
			return *d
		}
	}
	return op.ApprovalDecided{}
}

func TestApproveByModeAndRules(t *testing.T) {
	read := op.Call{ID: "c1", Name: "ReadFile", Args: `{"path":"a"}`}
	write := op.Call{ID: "c1", Name: "WriteFile", Args: `{"path":"a","content":"b"}`}
	for _, tt := range []struct {
		name   string
		mode   approval.Mode
		opened op.TaskOpened
		call   op.Call
		run    bool
		by     string
	}{
		{"reading needs no approval", approval.ModeDeny, op.TaskOpened{}, read, true, ""},
		{"deny refuses a write", approval.ModeDeny, op.TaskOpened{}, write, false, "mode:deny"},
		{"edits lets it run", approval.ModeEdits, op.TaskOpened{}, write, true, ""},
		{"without a user", approval.ModeAsk, op.TaskOpened{}, write, false, "nobody"},
		{"the task's rule allows", approval.ModeDeny, op.TaskOpened{Allow: []string{"Bash(go test *)"}}, bash("c1", "go test ./..."), true, ""},
		{"the task's rule refuses", approval.ModeAuto, op.TaskOpened{Deny: []string{"WriteFile"}}, write, false, "rule"},
		{"the agent's rule refuses", approval.ModeAuto, op.TaskOpened{Agent: &op.Agent{Name: "a", Deny: []string{"WriteFile"}}}, write, false, "rule"},
		{"a rule that cannot be read", approval.ModeAuto, op.TaskOpened{Deny: []string{"Bash("}}, read, false, "rules"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := approve(t, newGate(t, gate.Options{Mode: tt.mode}, tt.opened, tt.call), tt.call)
			if by := decided(v).By; v.Run != tt.run || !strings.HasPrefix(by, tt.by) {
				t.Errorf("run %v by %q (%s), want %v by %q", v.Run, by, v.Why, tt.run, tt.by)
			}
		})
	}
}

// TestAnswers asks a user who answers each question in one way, and looks at the next call.
func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name     string
		answer   gate.Answer
		run      bool
		askAgain bool // the same command is asked about again
		askOther bool // another command is asked about
	}{
		{"once", gate.Answer{Allow: true}, true, true, true},
		{"for the same call", gate.Answer{Allow: true, Same: true}, true, false, true},
		{"for calls like it", gate.Answer{Allow: true, Like: true}, true, false, false},
		{"for the task", gate.Answer{Allow: true, ForTask: true}, true, false, false},
		{"for the directory", gate.Answer{Allow: true, Always: true}, true, false, true},
		{"no", gate.Answer{Text: "use make"}, false, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			first, again, other := bash("c1", "go vet ./a"), bash("c2", "go vet ./a"), bash("c3", "go vet ./b")
			trust := consent.OpenTrust(filepath.Join(t.TempDir(), "approvals.json"))
			g := newGate(t, gate.Options{Mode: approval.ModeAsk, Trust: trust,
				Approve: func(context.Context, gate.Question) (gate.Answer, bool, error) {
					asked++
					return tt.answer, true, nil
				}}, op.TaskOpened{}, first, again, other)
			v := approve(t, g, first)
			if v.Run != tt.run || asked != 1 {
				t.Errorf("run %v after %d questions, want %v after 1", v.Run, asked, tt.run)
			}
			if tt.answer.Text != "" {
				said, ok := v.Record[len(v.Record)-1].(*op.UserSaid)
				if !ok || said.Text != tt.answer.Text || said.Source != op.SourceRejection {
					t.Errorf("the feedback is recorded as %+v", v.Record)
				}
			}
			asked = 0
			approve(t, g, again)
			if (asked == 1) != tt.askAgain {
				t.Errorf("the same call: %d questions", asked)
			}
			asked = 0
			approve(t, g, other)
			if (asked == 1) != tt.askOther {
				t.Errorf("another call: %d questions", asked)
			}
		})
	}
}

// TestEditedCall: arguments that a user puts in place of a call's are asked for until they are
// valid.
func TestEditedCall(t *testing.T) {
	var notes []string
	answers := []string{"{", `{"path":"a","content":"b"}`, `{"path":"c","content":"b"}`}
	call := op.Call{ID: "c1", Name: "WriteFile", Args: answers[1]}
	v := approve(t, newGate(t, gate.Options{Mode: approval.ModeAsk,
		Approve: func(_ context.Context, q gate.Question) (gate.Answer, bool, error) {
			notes = append(notes, q.Note)
			return gate.Answer{Args: answers[len(notes)-1]}, true, nil
		}}, op.TaskOpened{}, call), call)
	if v.Run || v.Args != answers[2] || len(notes) != 3 || !strings.HasPrefix(notes[1], "Not taken: ") ||
		notes[2] != "Nothing was edited." {
		t.Errorf("verdict %+v after the notes %q", v, notes)
	}
	if d := decided(v); d.Decision != "edit" || d.Args != answers[2] || d.By != op.ByUser {
		t.Errorf("recorded %+v", d)
	}
}
