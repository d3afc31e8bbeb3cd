package repeat_test

import (
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/repeat"
	"anamnesis/orchestrator/gate/gatetest"
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
