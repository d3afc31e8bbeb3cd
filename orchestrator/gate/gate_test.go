package gate

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// newGate returns the gate of a task whose model has just replied with some calls.
func newGate(t *testing.T, o Options, opened op.TaskOpened, calls ...op.Call) *Gate {
	t.Helper()
	root := t.TempDir()
	h := taskdir.Home{User: root, State: root, Data: root, Config: root}
	dir := filepath.Join(root, "w")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	place, err := workspace.OpenPlace(dir, filepath.Join(root, "store"), &worldstate.Options{Home: root}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = place.World.Close() })
	count, err := tokens.ForEncoding("r50k_base")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(h.Task("t"), 0o755); err != nil {
		t.Fatal(err)
	}
	jo := journal.Options{Count: count.Count, Learned: new(redact.Learned)}
	jo.Stream.Now = time.Now
	if place.Ledger, err = journal.OpenLedger(h, "t", count, 0, jo); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = place.Journal.Close() })
	opened.Task, opened.Dir = "t", dir
	err = place.Record(t.Context(), &opened, &op.UserSaid{Text: "go", Source: op.SourceRequest}, &op.WorldSaved{}, &op.ModelAsked{LastSeq: 3}, &op.ModelReplied{Calls: calls})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := tool.NewRegistry(builtin.Tools(builtin.Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	o.Tools, o.Asking = func() *tool.Registry { return tools }, new(sync.Mutex)
	return New(place, o)
}

// approve decides on a call, and records what the decision is.
func approve(t *testing.T, g *Gate, c op.Call) verdict {
	t.Helper()
	_, args, err := g.o.Tools().Validate(c)
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := g.o.Tools().Spec(c.Name)
	v := g.Approve(t.Context(), c, spec, json.RawMessage(args), nil)
	if len(v.Record) > 0 {
		if err := g.Record(t.Context(), v.Record...); err != nil {
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
			v := approve(t, newGate(t, Options{Mode: tt.mode}, tt.opened, tt.call), tt.call)
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
		answer   Answer
		run      bool
		askAgain bool // the same command is asked about again
		askOther bool // another command is asked about
	}{
		{"once", Answer{Allow: true}, true, true, true},
		{"for the same call", Answer{Allow: true, Same: true}, true, false, true},
		{"for calls like it", Answer{Allow: true, Like: true}, true, false, false},
		{"for the task", Answer{Allow: true, ForTask: true}, true, false, false},
		{"no", Answer{Feedback: "use make"}, false, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			first, again, other := bash("c1", "go vet ./a"), bash("c2", "go vet ./a"), bash("c3", "go vet ./b")
			g := newGate(t, Options{Mode: approval.ModeAsk, Approve: func(context.Context, Question) Answer {
				asked++
				return tt.answer
			}}, op.TaskOpened{}, first, again, other)
			v := approve(t, g, first)
			if v.Run != tt.run || asked != 1 {
				t.Errorf("run %v after %d questions, want %v after 1", v.Run, asked, tt.run)
			}
			if tt.answer.Feedback != "" {
				said, ok := v.Record[len(v.Record)-1].(*op.UserSaid)
				if !ok || said.Text != tt.answer.Feedback || said.Source != op.SourceRejection {
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
	v := approve(t, newGate(t, Options{Mode: approval.ModeAsk, Approve: func(_ context.Context, q Question) Answer {
		notes = append(notes, q.Note)
		return Answer{Args: answers[len(notes)-1]}
	}}, op.TaskOpened{}, call), call)
	if v.Run || v.Args != answers[2] || len(notes) != 3 || !strings.HasPrefix(notes[1], "Not taken: ") || notes[2] != "Nothing was edited." {
		t.Errorf("verdict %+v after the notes %q", v, notes)
	}
	if d := decided(v); d.Decision != "edit" || d.Args != answers[2] || d.By != op.ByUser {
		t.Errorf("recorded %+v", d)
	}
}

// TestResearchFirst: a call about a package that was not looked up is refused until it was.
func TestResearchFirst(t *testing.T) {
	call := bash("c1", "npm install left-pad")
	for _, off := range []bool{false, true} {
		g := newGate(t, Options{Mode: approval.ModeAuto}, op.TaskOpened{NoResearch: off}, call)
		v := approve(t, g, call)
		if v.Run != off {
			t.Fatalf("NoResearch %v: run %v: %s", off, v.Run, v.Why)
		}
		if off {
			continue
		}
		d := decided(v)
		if d.By != state.ByResearchGuard || len(d.Subjects) != 1 || !strings.Contains(v.Why, "research first") {
			t.Fatalf("refused by %q about %q: %s", d.By, d.Subjects, v.Why)
		}
		if err := g.Record(t.Context(), &op.ResearchDone{Subject: d.Subjects[0]}); err != nil {
			t.Fatal(err)
		}
		if v = approve(t, g, call); !v.Run || len(decided(v).Research) != 1 {
			t.Errorf("after the research: run %v, recorded %+v", v.Run, decided(v))
		}
	}
}

// TestRepeatedCall: in a row, the same call is reminded of and then refused.
func TestRepeatedCall(t *testing.T) {
	g := newGate(t, Options{Mode: approval.ModeAuto}, op.TaskOpened{}, bash("c1", "ls"))
	held := 0
	for n := range 40 {
		call := bash("c1", "ls")
		if n > 0 {
			if err := g.Record(t.Context(), &op.WorldSaved{Parent: g.State().Current}, &op.ModelAsked{}, &op.ModelReplied{Calls: []op.Call{call}}); err != nil {
				t.Fatal(err)
			}
		}
		spec, _ := g.o.Tools().Spec("Bash")
		weighed, again := g.WeighCall(call, spec)
		bodies := g.Held(call, weighed, again)
		if held = n; len(bodies) > 0 {
			if d, ok := bodies[0].(*op.ApprovalDecided); !ok || d.By != byRepeat || d.Decision != "refuse" {
				t.Fatalf("held with %+v", bodies[0])
			}
			break
		}
		if err := g.Record(t.Context(), &op.ToolCalled{Call: "c1", Name: "Bash", Args: call.Args}, &op.ToolReturned{Call: "c1", Name: "Bash", Text: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if held < 2 || held == 39 {
		t.Errorf("the call was held at its repetition %d", held)
	}
}
