package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
)

func TestMain(m *testing.M) {
	guard.SuperviseMain() // this binary also supervises commands
	os.Exit(m.Run())
}

// pass has a call meet the rules and the user, without recording anything.
func pass(t *testing.T, g *gate.Gate, c *gate.Call) ([]op.Body, error) {
	t.Helper()
	if refusal, err := g.CheckRules(t.Context(), c); refusal != nil || err != nil {
		return refusal, err
	}
	return g.AskUser(t.Context(), c)
}

// TestChecksInOrder: the first refusal or fault ends a call; one that the user edited meets every check again.
func TestChecksInOrder(t *testing.T) {
	var met []string
	meets := func(name string) gate.Check {
		return func(_ context.Context, c *gate.Call) ([]op.Body, error) {
			met = append(met, name+c.Args)
			return nil, nil
		}
	}
	refuse := func(_ context.Context, c *gate.Call) ([]op.Body, error) { return c.Fail("no"), nil }
	broken := errors.New("disk full")
	fail := func(context.Context, *gate.Call) ([]op.Body, error) { return nil, broken }
	edit := func(_ context.Context, c *gate.Call) ([]op.Body, error) {
		if c.Args == "1" {
			c.Edited = "2"
		}
		return nil, nil
	}
	for _, tt := range []struct {
		name   string
		checks gate.Checks
		met    string
		err    error
		ends   bool // with a refusal
	}{
		{"all pass", gate.Checks{meets("a"), meets("b")}, "a1 b1", nil, false},
		{"one refuses", gate.Checks{meets("a"), refuse, meets("b")}, "a1", nil, true},
		{"the last refuses", gate.Checks{meets("a"), refuse}, "a1", nil, true},
		{"one breaks", gate.Checks{meets("a"), fail, meets("b")}, "a1", broken, false},
		{"the user edits", gate.Checks{meets("a"), edit, meets("b")}, "a1 a2 b2", nil, false},
		{"none", nil, "", nil, false},
	} {
		met = nil
		c, err := tt.checks.Decide(t.Context(), op.Call{ID: "c", Args: "1"})
		if got := strings.Join(met, " "); got != tt.met || !errors.Is(err, tt.err) || (c.Refusal != nil) != tt.ends ||
			(c.Note != "") != (c.Args == "2") {
			t.Errorf("%s: met %s, %v, refusal %v, note %q", tt.name, got, err, c.Refusal, c.Note)
		}
	}
}

// rooted gives a call the directory of its task.
func rooted(t *testing.T, a *approver, c *gate.Call) {
	t.Helper()
	root, err := os.OpenRoot(a.place.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	c.Env.Dir, c.Env.Root = a.place.Dir, root
}

// TestPrepare: a call that edits is shown before the user is asked, unless it cannot be made or changes nothing.
func TestPrepare(t *testing.T) {
	ask := func(context.Context, gate.Question) (gate.Answer, bool, error) { return gate.Answer{}, true, nil }
	box := new(guard.Sandbox)
	for _, tt := range []struct {
		name    string
		call    op.Call
		approve func(context.Context, gate.Question) (gate.Answer, bool, error)
		shown   string
		fails   bool
		boxed   bool // the sandbox is the task's, here none
	}{
		{"a new file", op.Call{Name: "WriteFile", Args: `{"path":"new","content":"x"}`}, ask, "new", false, false},
		{"nobody to show it", op.Call{Name: "WriteFile", Args: `{"path":"new","content":"x"}`}, nil, "", false, false},
		{"outside", op.Call{Name: "WriteFile", Args: `{"path":"../new","content":"x"}`}, ask, "", true, false},
		{"a read", op.Call{Name: "ReadFile", Args: `{"path":"old"}`}, ask, "", false, false},
		{"a command", op.Call{Name: "Bash", Args: `{"command":"ls"}`}, ask, "", false, true},
	} {
		shown := ""
		a := newGate(t, gate.Options{Approve: tt.approve,
			Editing: func(_ op.Call, changes []file.Change) { shown += changes[0].Path }}, op.TaskOpened{}, tt.call)
		c := gatetest.Call(t, a.tools, tt.call)
		rooted(t, a, c)
		c.Env.Sandbox = box
		was := fmt.Sprintf("%T", c.Tool)
		refusal, err := a.gate.Prepare(t.Context(), c)
		if err != nil || refusal != nil || shown != tt.shown || (fmt.Sprintf("%T", c.Tool) != was) != tt.fails ||
			(c.Env.Sandbox != box) != tt.boxed {
			t.Errorf("%s: shown %q, another tool %v, sandbox %v, %v, %v", tt.name, shown,
				fmt.Sprintf("%T", c.Tool) != was, c.Env.Sandbox, refusal, err)
		}
		if tt.fails {
			if r, err := c.Tool.Call(t.Context(), c.Env, c.Input); err != nil || !r.IsError || !c.Spec.ReadOnly {
				t.Errorf("%s: %+v, %v", tt.name, r, err)
			}
		}
	}
	a := newGate(t, gate.Options{Approve: ask}, op.TaskOpened{}, op.Call{})
	c := gatetest.Call(t, a.tools, op.Call{Name: "WriteFile", Args: `{"path":"new","content":"x"}`})
	rooted(t, a, c)
	if refusal, err := a.gate.Prepare(t.Context(), c); refusal != nil || err != nil {
		t.Errorf("nobody wants to see edits: %v, %v", refusal, err)
	}
}

// TestHooks: a hook stands in for the mode's question, and may ask where the mode would not; it does not outvote a
// rule.
func TestHooks(t *testing.T) {
	call := bash("c1", "make")
	for _, tt := range []struct {
		name         string
		mode         approval.Mode
		opened       op.TaskOpened
		asks, allows bool
		run          bool
		by           string
	}{
		{"no hook", approval.ModeAsk, op.TaskOpened{}, false, false, false, "nobody"},
		{"it allows", approval.ModeAsk, op.TaskOpened{}, false, true, true, "hook"},
		{"it allows what the mode does", approval.ModeAuto, op.TaskOpened{}, false, true, true, ""},
		{"it allows what the mode refuses", approval.ModeDeny, op.TaskOpened{}, false, true, false, "mode:deny"},
		{"it allows what a rule asks about", approval.ModeAsk, op.TaskOpened{Ask: []string{"Bash"}}, false, true, false, "nobody"},
		{"it asks", approval.ModeAuto, op.TaskOpened{}, true, false, false, "nobody"},
		{"it asks about what is refused", approval.ModeDeny, op.TaskOpened{}, true, false, false, "mode:deny"},
		{"it asks about what is asked", approval.ModeAsk, op.TaskOpened{}, true, false, false, "nobody"},
	} {
		a := newGate(t, gate.Options{Mode: tt.mode}, tt.opened, call)
		c := gatetest.Call(t, a.tools, call)
		c.HookAsks, c.HookAllows = tt.asks, tt.allows
		refusal, err := pass(t, a.gate, c)
		if err != nil {
			t.Fatal(err)
		}
		if by := decided(verdict{Record: append(refusal, c.Record...)}).By; (refusal == nil) != tt.run || by != tt.by {
			t.Errorf("%s: run %v by %q, want %v by %q", tt.name, refusal == nil, by, tt.run, tt.by)
		}
	}
}

// TestAutorun: what writes a file that other programs run is asked about, and without a user refused with the reason.
func TestAutorun(t *testing.T) {
	spec := func(name string, edits bool) tool.Spec { return tool.Spec{Name: name, Edits: edits} }
	for _, tt := range []struct {
		name  string
		spec  tool.Spec
		args  string
		names string // the file, in the refusal; empty: the call runs
	}{
		{"an edit", spec("WriteFile", true), `{"path":".envrc","content":"x"}`, ".envrc"},
		{"an edit of git's hooks", spec("WriteFile", true), `{"path":".git/hooks/pre-commit","content":"x"}`, ".git/hooks/pre-commit"},
		{"an edit of another file", spec("WriteFile", true), `{"path":"a","content":"x"}`, ""},
		{"a server's tool", spec("mcp__a__b", false), `{"file":".envrc"}`, ".envrc"},
		{"an edit that makes a repository", spec("WriteFile", true), `{"path":"bare/HEAD","content":"x"}`, "bare/HEAD"},
		{"a server's tool that names such a file", spec("mcp__a__b", false), `{"file":"bare/HEAD"}`, ""},
		{"another tool", spec("other", false), `{"file":".envrc"}`, ""},
		{"a command", tool.Spec{Name: "Bash", Command: "command"}, `{"command":"echo x > .envrc"}`, ".envrc"},
		{"a command that reads one", tool.Spec{Name: "Bash", Command: "command"}, `{"command":"cat .envrc"}`, ""},
		{"one that only reads", tool.Spec{Name: "WriteFile", ReadOnly: true, Edits: true}, `{"path":".envrc","content":"x"}`, ""},
	} {
		rules := []approval.Rule{{Tool: tt.spec.Name, Verdict: approval.Allow}}
		a := newGate(t, gate.Options{Mode: approval.ModeEdits, Rules: rules}, op.TaskOpened{})
		c := &gate.Call{
			Call: op.Call{ID: "c", Name: tt.spec.Name, Args: tt.args}, Spec: tt.spec, Input: json.RawMessage(tt.args),
			Env: new(tool.Env),
		}
		refusal, err := pass(t, a.gate, c)
		if err != nil {
			t.Fatal(err)
		}
		if (refusal == nil) != (tt.names == "") {
			t.Errorf("%s: %v", tt.name, refusal)
		} else if refusal != nil {
			if text := refusal[len(refusal)-1].(*op.ToolReturned).Text; !strings.Contains(text, "run by themselves what it writes: "+tt.names) {
				t.Errorf("%s: %s", tt.name, text)
			}
		}
	}
	a := newGate(t, gate.Options{Mode: approval.ModeAsk}, op.TaskOpened{}, bash("c1", "make"))
	if v := approve(t, a, bash("c1", "make")); strings.Contains(v.Why, "run by themselves") {
		t.Errorf("another call is refused for the same reason: %s", v.Why)
	}
}

// TestApprovedBefore: what a user allowed for the task holds for the calls of the same reply, too, and only for such.
func TestApprovedBefore(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    op.ApprovalDecided
		run  bool
	}{
		{"calls like it", op.ApprovalDecided{Rules: []string{"Bash(make *)"}}, true},
		{"other calls", op.ApprovalDecided{Rules: []string{"Bash(go *)"}}, false},
		{"once", op.ApprovalDecided{}, false},
	} {
		for _, folded := range []bool{false, true} {
			call := bash("c1", "make lint")
			a := newGate(t, gate.Options{Mode: approval.ModeAsk}, op.TaskOpened{}, call)
			tt.d.Call, tt.d.Decision, tt.d.By = "c0", "allow", op.ByUser
			post := a.place.Journal.Post
			if folded {
				post = a.place.Record
			}
			if err := post(t.Context(), &tt.d); err != nil {
				t.Fatal(err)
			}
			if v := approve(t, a, call); v.Run != tt.run {
				t.Errorf("%s, folded %v: run %v", tt.name, folded, v.Run)
			}
		}
	}
	// It is no answer to a rule that asks, nor to a mode that refuses.
	for mode, opened := range map[approval.Mode]op.TaskOpened{approval.ModeAsk: {Ask: []string{"Bash"}}, approval.ModeDeny: {}} {
		call := bash("c1", "make lint")
		a := newGate(t, gate.Options{Mode: mode}, opened, call)
		if err := a.place.Record(t.Context(), &op.ApprovalDecided{Call: "c0", Decision: "allow", Rules: []string{"Bash(make *)"}}); err != nil {
			t.Fatal(err)
		}
		if v := approve(t, a, call); v.Run {
			t.Errorf("in mode %s with %+v: it runs", mode, opened.Ask)
		}
	}
	// The print of an approval is that of the question.
	call := bash("c1", "make lint")
	for _, tt := range []struct {
		name        string
		same, other bool
		run         bool
	}{{"the same call", true, false, true}, {"this once", false, false, false}, {"another call", true, true, false}} {
		a := newGate(t, gate.Options{Mode: approval.ModeAsk,
			Approve: func(context.Context, gate.Question) (gate.Answer, bool, error) {
				return gate.Answer{Text: "no"}, true, nil
			}}, op.TaskOpened{}, call)
		var print string
		asks := gate.New(a.place,
			gate.Options{Mode: approval.ModeAsk, Tools: func() *tool.Registry { return a.tools.Registry },
				Approve: func(_ context.Context, q gate.Question) (gate.Answer, bool, error) {
					print = q.Print
					return gate.Answer{Text: "no"}, true, nil
				}})
		if refusal, err := pass(t, asks, gatetest.Call(t, a.tools, call)); err != nil || refusal == nil || print == "" {
			t.Fatalf("the question's print %q, %v, %v", print, refusal, err)
		}
		if tt.other {
			print += "x"
		}
		if err := a.place.Journal.Post(t.Context(), &op.ApprovalDecided{Call: "c0", Decision: "allow", By: op.ByUser, Same: tt.same, Print: print}); err != nil {
			t.Fatal(err)
		}
		if v := approve(t, a, call); v.Run != tt.run {
			t.Errorf("%s: run %v", tt.name, v.Run)
		}
	}
}

// TestChangedMeanwhile: a script that is changed while the user is asked about it does not run.
func TestChangedMeanwhile(t *testing.T) {
	call := bash("c1", "sh run.sh")
	for _, changed := range []bool{false, true} {
		var a *approver
		a = newGate(t, gate.Options{Mode: approval.ModeAsk,
			Approve: func(context.Context, gate.Question) (gate.Answer, bool, error) {
				if changed {
					if err := os.WriteFile(filepath.Join(a.place.Dir, "run.sh"), []byte("rm -r ."), 0o600); err != nil {
						t.Error(err)
					}
				}
				return gate.Answer{Allow: true}, true, nil
			}}, op.TaskOpened{}, call)
		if err := os.WriteFile(filepath.Join(a.place.Dir, "run.sh"), []byte("ls"), 0o600); err != nil {
			t.Fatal(err)
		}
		v := approve(t, a, call)
		if v.Run == changed || changed && decided(v).By != "guard:changed" {
			t.Errorf("changed %v: %+v", changed, v)
		}
	}
}

// TestNetwork: a command that wants the network is asked about twice, where the sandbox holds it back; an edit ends the
// questions.
func TestNetwork(t *testing.T) {
	box, err := guard.NewSandbox(t.Context(),
		guard.SandboxOptions{World: t.TempDir(), Cache: t.TempDir(), Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, args string
		box        *guard.Sandbox
		answer     gate.Answer
		asked      string
	}{
		{"with it", `{"command":"make","network":true}`, box, gate.Answer{Allow: true}, "Bash network"},
		{"without", `{"command":"make"}`, box, gate.Answer{Allow: true}, "Bash"},
		{"not wanted", `{"command":"make","network":false}`, box, gate.Answer{Allow: true}, "Bash"},
		{"no sandbox", `{"command":"make","network":true}`, nil, gate.Answer{Allow: true}, "Bash"},
		{"refused", `{"command":"make","network":true}`, box, gate.Answer{}, "Bash"},
		{"edited", `{"command":"make","network":true}`, box, gate.Answer{Args: `{"command":"ls"}`}, "Bash"},
	} {
		call := op.Call{ID: "c1", Name: "Bash", Args: tt.args}
		var asked []string
		a := newGate(t, gate.Options{Mode: approval.ModeAsk,
			Approve: func(_ context.Context, q gate.Question) (gate.Answer, bool, error) {
				asked = append(asked, strings.ToLower(q.Name[:1])+q.Name[1:])
				return tt.answer, true, nil
			}}, op.TaskOpened{}, call)
		c := gatetest.Call(t, a.tools, call)
		c.Env.Sandbox = tt.box
		if _, err := pass(t, a.gate, c); err != nil {
			t.Fatal(err)
		}
		want := strings.ToLower(tt.asked)
		if !box.HoldsNetwork() {
			want = "bash"
		}
		if got := strings.ToLower(strings.Join(asked, " ")); got != want {
			t.Errorf("%s: asked about %s, want %s", tt.name, got, fmt.Sprint(want))
		}
	}
}

// TestAlwaysNamed: an approval for the directory is listed by the command, or by the arguments.
func TestAlwaysNamed(t *testing.T) {
	trust := consent.OpenTrust(filepath.Join(t.TempDir(), "approvals.json"))
	write := op.Call{ID: "c2", Name: "WriteFile", Args: `{"path":"a", "content":"b"}`}
	calls := []op.Call{bash("c1", "make lint"), write}
	always := func(context.Context, gate.Question) (gate.Answer, bool, error) {
		return gate.Answer{Allow: true, Always: true}, true, nil
	}
	a := newGate(t, gate.Options{Mode: approval.ModeAsk, Trust: trust, Approve: always}, op.TaskOpened{}, calls...)
	var names []string
	for _, c := range calls {
		approve(t, a, c)
	}
	list, err := trust.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		names = append(names, l.Name)
	}
	if got := strings.Join(names, ", "); got != `Bash(make lint), WriteFile({"content":"b","path":"a"})` {
		t.Errorf("listed as %s", got)
	}
}
