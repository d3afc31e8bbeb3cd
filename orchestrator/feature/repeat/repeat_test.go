package repeat_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/repeat"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/orchestrator/tool/shell"
	"anamnesis/orchestrator/workspace"
)

// TestRepeatedCall: in a row, the same call is reminded of and then refused.
func TestRepeatedCall(t *testing.T) {
	call := op.Call{ID: "c1", Name: "Bash", Args: `{"command":"ls"}`}
	place, tools := gatetest.Place(t, op.TaskOpened{}, call), gatetest.Tools(t, shell.Bash())
	g := repeat.New(place, tools, false)
	held, reminded := 0, 0
	for n := range 40 {
		if n > 0 {
			if err := place.Record(t.Context(), &op.WorldSaved{Parent: place.State().Current}, &op.ModelAsked{}, &op.ModelReplied{Calls: []op.Call{call}}); err != nil {
				t.Fatal(err)
			}
		}
		c := gatetest.Call(t, tools, call)
		refusal, err := g.Check(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if held = n; len(refusal) > 0 {
			if d, ok := refusal[0].(*op.ApprovalDecided); !ok || d.By != "guard:repeat" || d.Decision != "refuse" {
				t.Fatalf("held with %+v", refusal[0])
			}
			break
		}
		if c.Reminder != "" {
			reminded++
		}
		if err := place.Record(t.Context(), &op.ToolCalled{Call: "c1", Name: "Bash", Args: call.Args}, &op.ToolReturned{Call: "c1", Name: "Bash", Text: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if held < 2 || held == 39 || reminded == 0 {
		t.Errorf("the call was held at its repetition %d, after %d reminders", held, reminded)
	}
}

// TestSameReply: calls of one reply count as earlier runs until one of them may change the files.
func TestSameReply(t *testing.T) {
	read := func(id string) op.Call { return op.Call{ID: id, Name: "ReadFile", Args: `{"path":"a"}`} }
	other := op.Call{ID: "o", Name: "ReadFile", Args: `{"path":"b"}`}
	bash := op.Call{ID: "b", Name: "Bash", Args: `{"command":"make"}`}
	unknown := op.Call{ID: "u", Name: "Nothing", Args: `{}`}
	check := func(calls []op.Call, at int) []op.Body {
		place, tools := gatetest.Place(t, op.TaskOpened{}, calls...), gatetest.Tools(t, shell.Bash(),
			file.ReadFile(nil))
		err := os.WriteFile(filepath.Join(place.Dir, "a"), nil, 0o600)
		if err == nil {
			_, err = place.SeeNow(t.Context()) // the world is known
		}
		if err != nil {
			t.Fatal(err)
		}
		refusal, err := repeat.New(place, tools, false).Check(t.Context(), gatetest.Call(t, tools, calls[at]))
		if err != nil {
			t.Fatal(err)
		}
		return refusal
	}
	for name, row := range map[string]struct {
		calls   []op.Call // the last of them is checked
		refused bool
	}{
		"the first": {[]op.Call{read("1")}, false}, "the second": {[]op.Call{read("1"), read("2")}, false}, "the third": {[]op.Call{read("1"), read("2"), read("3")}, true},
		"with others": {[]op.Call{read("1"), other, unknown, read("2"), read("3")}, true}, "one changes files": {[]op.Call{read("1"), read("2"), bash, read("3")}, false},
		"another path": {[]op.Call{other, read("1"), read("2")}, false},
	} {
		if refusal := check(row.calls, len(row.calls)-1); (len(refusal) > 0) != row.refused {
			t.Errorf("%s: %v", name, refusal)
		}
	}
	if refusal := check([]op.Call{read("1"), read("2"), read("3")}, 0); len(refusal) > 0 {
		t.Errorf("before the others: %v", refusal)
	}
	calls := []op.Call{read("1"), read("2"), read("3")}
	place, tools := gatetest.Place(t, op.TaskOpened{}, calls...), gatetest.Tools(t, file.ReadFile(nil))
	if refusal, err := repeat.New(place, tools, false).Check(t.Context(), gatetest.Call(t, tools, calls[2])); refusal != nil || err != nil {
		t.Errorf("in unknown files: %v, %v", refusal, err)
	}
}

// see makes the place know the state of its files.
func see(t *testing.T, place *workspace.Place) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(place.Dir, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := place.SeeNow(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestEarlierRuns: a call that ran in the same state of the files is reminded of the last result, and how it ended.
func TestEarlierRuns(t *testing.T) {
	read := op.Call{ID: "c1", Name: "ReadFile", Args: `{"path":"a"}`}
	for _, tt := range []struct {
		name     string
		failed   []bool // the runs before
		world    string // in which they ran; empty: the present one
		reminder string
		refused  bool
	}{
		{"none", nil, "", "", false},
		{"one", []bool{false}, "", "(it succeeded)", false},
		{"one that failed", []bool{true}, "", "(it failed)", false},
		{"two", []bool{false, true}, "", "", true},
		{"in other files", []bool{false}, "other", "", false},
	} {
		place, tools := gatetest.Place(t, op.TaskOpened{}, read), gatetest.Tools(t, file.ReadFile(nil))
		see(t, place)
		var last uint64
		for _, failed := range tt.failed {
			bodies := []op.Body{&op.ToolCalled{Call: "c1", Name: read.Name, Args: read.Args,
				World: cmp.Or(tt.world, place.SeenTree())},
				&op.ToolReturned{Call: "c1", Name: read.Name, IsError: failed},
				&op.WorldSaved{Parent: place.State().Current, Tree: place.SeenTree()}, &op.ModelAsked{}}
			for i, b := range append(bodies, &op.ModelReplied{Calls: []op.Call{read}}) {
				if err := place.Record(t.Context(), b); err != nil {
					t.Fatal(err)
				}
				if i == 1 {
					last = place.State().Last
				}
			}
		}
		c := gatetest.Call(t, tools, read)
		refusal, err := repeat.New(place, tools, false).Check(t.Context(), c)
		if err != nil || (refusal != nil) != tt.refused || !tt.refused && !strings.Contains(c.Reminder, tt.reminder) ||
			tt.reminder == "" && !tt.refused && c.Reminder != "" {
			t.Errorf("%s: reminder %q, refused %v, %v", tt.name, c.Reminder, refusal != nil, err)
		}
		if (c.Repeats == last) != (tt.world == "") {
			t.Errorf("%s: it repeats op %d, the last is %d", tt.name, c.Repeats, last)
		}
	}
}

// TestUndone: a call that a jump has undone is held once in the same files, unless the user wants such calls to run.
func TestUndone(t *testing.T) {
	call := op.Call{ID: "c1", Name: "Bash", Args: `{"command":"make"}`}
	for _, runUndone := range []bool{false, true} {
		place, tools := gatetest.Place(t, op.TaskOpened{}, call), gatetest.Tools(t, shell.Bash())
		see(t, place)
		for _, b := range []op.Body{
			&op.ToolCalled{Call: "c1", Name: call.Name, Args: call.Args, World: place.SeenTree(), Changes: true},
			&op.ToolReturned{Call: "c1", Name: call.Name},
			&op.WorldSaved{Tree: "other"}, &op.JumpIntended{From: 1, By: op.ByAgent, Backward: true, Reason: "wrong"},
			&op.JumpDone{From: 1, Backward: true},
			&op.ModelAsked{}, &op.ModelReplied{Calls: []op.Call{call}},
		} {
			if err := place.Record(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		refusal, err := repeat.New(place, tools, runUndone).Check(t.Context(), gatetest.Call(t, tools, call))
		if err != nil || (refusal == nil) != runUndone {
			t.Errorf("undone calls run: %v; refused %v, %v", runUndone, refusal, err)
		}
		if refusal != nil && refusal[0].(*op.ApprovalDecided).By != state.ByUndoneGuard {
			t.Errorf("refused by %+v", refusal[0])
		}
	}
}

// TestEffects: what a call may change beside the files, and which calls may repeat on purpose.
func TestEffects(t *testing.T) {
	for _, tt := range []struct {
		call    op.Call
		spec    tool.Spec
		effects bool
		exempt  bool
	}{
		{op.Call{Name: "Bash", Args: `{"command":"pip install x"}`}, tool.Spec{Command: "command"}, true, false},
		{op.Call{Name: "Bash", Args: `{"command":"ls"}`}, tool.Spec{Command: "command"}, false, false},
		{op.Call{Name: "ReadFile", Args: `{"path":"a"}`}, tool.Spec{ReadOnly: true}, false, false},
		{op.Call{Name: "WriteFile", Args: `{"path":"a"}`}, tool.Spec{Edits: true}, false, false},
		{op.Call{Name: "mcp__a", Args: `{}`}, tool.Spec{}, true, false},
		{op.Call{Name: "jump_to_step", Args: `{}`}, tool.Spec{Rewinds: true}, false, true},
		{op.Call{Name: "SetTodoList", Args: `{}`}, tool.Spec{Repeats: true, ReadOnly: true}, false, true},
		{op.Call{Name: "Task", Args: `{"resume":"t.1"}`}, tool.Spec{Delegates: true}, false, true},
		{op.Call{Name: "Task", Args: `{}`}, tool.Spec{Delegates: true}, true, false},
		{op.Call{Name: "mcp__a", Args: `{"resume":"t.1"}`}, tool.Spec{}, true, false},
		{op.Call{Name: "Bash", Args: `{"command":"sleep 5"}`}, tool.Spec{Command: "command"}, false, true},
	} {
		tt.call.ID = "c1"
		place, tools := gatetest.Place(t, op.TaskOpened{}, tt.call), gatetest.Tools(t, shell.Bash())
		see(t, place)
		for range 2 { // two runs block the third
			for _, b := range []op.Body{
				&op.ToolCalled{Call: "c1", Name: tt.call.Name, Args: tt.call.Args, World: place.SeenTree()},
				&op.ToolReturned{Call: "c1", Name: tt.call.Name},
				&op.WorldSaved{Parent: place.State().Current, Tree: place.SeenTree()}, &op.ModelAsked{},
				&op.ModelReplied{Calls: []op.Call{tt.call}},
			} {
				if err := place.Record(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
		}
		c := &gate.Call{Call: tt.call, Spec: tt.spec, Input: []byte(tt.call.Args), Env: new(tool.Env)}
		refusal, err := repeat.New(place, tools, false).Check(t.Context(), c)
		if err != nil || (refusal == nil) != tt.exempt || c.Effects != tt.effects {
			t.Errorf("%s %s: effects %v, refused %v, %v", tt.call.Name, tt.call.Args, c.Effects, refusal != nil, err)
		}
	}
}

// TestRow: the calls of the same reply that did not return yet count in a row.
func TestRow(t *testing.T) {
	same := func(id string) op.Call { return op.Call{ID: id, Name: "Bash", Args: `{"command":"make"}`} }
	other := op.Call{ID: "o", Name: "Bash", Args: `{"command":"ls"}`}
	for _, tt := range []struct {
		name     string
		calls    []op.Call // the last is checked
		returned int       // of them, in order
		reminder bool      // of three in a row
	}{
		{"two", []op.Call{same("1"), same("2")}, 0, false},
		{"three", []op.Call{same("1"), same("2"), same("3")}, 0, true},
		{"three, of which one returned", []op.Call{same("1"), same("2"), same("3")}, 1, true},
		{"three, of which two returned", []op.Call{same("1"), same("2"), same("3")}, 2, true},
		{"with another between", []op.Call{same("1"), same("2"), other, same("3")}, 0, false},
		{"four", []op.Call{same("1"), same("2"), same("3"), same("4")}, 0, false},
	} {
		place, tools := gatetest.Place(t, op.TaskOpened{}, tt.calls...), gatetest.Tools(t, shell.Bash())
		for _, c := range tt.calls[:tt.returned] {
			if err := place.Record(t.Context(), &op.ToolCalled{Call: c.ID, Name: c.Name, Args: c.Args}, &op.ToolReturned{Call: c.ID, Name: c.Name}); err != nil {
				t.Fatal(err)
			}
		}
		c := gatetest.Call(t, tools, tt.calls[len(tt.calls)-1])
		if refusal, err := repeat.New(place, tools, false).Check(t.Context(), c); err != nil || refusal != nil ||
			strings.Contains(c.Reminder, "3 times in a row") != tt.reminder {
			t.Errorf("%s: reminder %q, refused %v, %v", tt.name, c.Reminder, refusal, err)
		}
	}
}
