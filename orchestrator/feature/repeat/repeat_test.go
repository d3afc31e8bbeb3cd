package repeat_test

import (
	"os"
	"path/filepath"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/repeat"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/orchestrator/tool/shell"
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
		place, tools := gatetest.Place(t, op.TaskOpened{}, calls...), gatetest.Tools(t, shell.Bash(), file.ReadFile(nil))
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
}
