package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
)

// TestFillNamesLostCalls: the model is told which calls changed files that no snapshot has, and not those that a later
// snapshot has or that a jump took back.
func TestFillNamesLostCalls(t *testing.T) {
	p := gatetest.Place(t, op.TaskOpened{}, op.Call{ID: "first", Name: "Bash", Args: `{"command":"make first"}`})
	record := func(bodies ...op.Body) {
		t.Helper()
		if err := p.Record(t.Context(), bodies...); err != nil {
			t.Fatal(err)
		}
	}
	call := func(id string) {
		t.Helper()
		args := `{"command":"make ` + id + `"}`
		record(&op.ToolCalled{Call: id, Name: "Bash", Args: args, Changes: true},
			&op.ToolReturned{Call: id, Name: "Bash"})
	}
	step := func(id string) {
		t.Helper()
		record(&op.ModelAsked{LastSeq: p.State().Last},
			&op.ModelReplied{Calls: []op.Call{{ID: id, Name: "Bash", Args: `{"command":"make ` + id + `"}`}}})
		call(id)
	}
	save := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(p.Dir, "f"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.SaveStep(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	told := func(when string, want ...string) {
		t.Helper()
		text, err := p.Fill(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"first", "left", "last"} {
			if got := strings.Contains(text, "make "+id); got != strings.Contains(strings.Join(want, " "), id) {
				t.Errorf("%s, that %s is gone is told: %v\n%s", when, id, got, text)
			}
		}
	}
	call("first")
	save("one")
	told("after a snapshot")
	step("left")
	told("before its snapshot", "left")
	save("two")
	record(&op.JumpRequested{To: 1}, &op.JumpIntended{From: 2, To: 1, Backward: true},
		&op.JumpDone{From: 2, To: 1, Backward: true})
	told("after a jump")
	step("last")
	told("after a jump and a call", "last")
}
