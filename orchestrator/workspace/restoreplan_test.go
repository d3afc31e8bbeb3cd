package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/state"
)

// TestPlanRestore: a jump starts from the present files, keeps what the user changed unless they are to be
// overwritten, and writes all files again where the directory lost them.
func TestPlanRestore(t *testing.T) {
	for name, tt := range map[string]struct {
		change           map[string]string // after the last step; "": removed
		overwrite        bool
		write, del, keep int
		present          bool // the base is the snapshot of the last step
	}{
		"unchanged":              {write: 1, del: 1, present: true},
		"the user added a file":  {change: map[string]string{"mine": "x"}, write: 1, del: 1, keep: 1},
		"the user edited a file": {change: map[string]string{"f": "mine"}, del: 1, keep: 1},
		"which is overwritten":   {change: map[string]string{"f": "mine"}, overwrite: true, write: 1, del: 1},
		"the files are lost":     {change: map[string]string{"f": "", "g": "", "same": ""}, write: 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := gatetest.Place(t, op.TaskOpened{})
			write := func(name, text string) {
				t.Helper()
				path := filepath.Join(p.Dir, name)
				err := os.WriteFile(path, []byte(text), 0o644)
				if text == "" {
					err = os.Remove(path)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			write("f", "one")
			write("same", "same")
			if err := p.SaveStep(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			call := op.Call{ID: "c", Name: "Any", Args: "{}"}
			if err := p.Record(t.Context(), &op.ModelAsked{LastSeq: p.State().Last}, &op.ModelReplied{Calls: []op.Call{call}}); err != nil {
				t.Fatal(err)
			}
			if err := p.BeginCall(t.Context(), &op.ToolCalled{Call: "c", Name: "Any", Changes: true}); err != nil {
				t.Fatal(err)
			}
			write("f", "two")
			write("g", "new")
			if err := p.Record(t.Context(), &op.ToolReturned{Call: "c", Name: "Any"}); err != nil {
				t.Fatal(err)
			}
			if err := p.SaveStep(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			last, err := p.WorldOf(2)
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range tt.change {
				write(name, text)
			}
			j := &state.Pending{JumpRequested: op.JumpRequested{To: 1, Overwrite: tt.overwrite}}
			plan, err := p.PlanRestore(t.Context(), j, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(plan.Plan.Write) != tt.write || len(plan.Plan.Delete) != tt.del || len(plan.Plan.Keep) != tt.keep {
				t.Errorf("writes %q, deletes %q, keeps %v", plan.Plan.Write, plan.Plan.Delete, plan.Plan.Keep)
			}
			if (plan.Base == last.Commit) != tt.present || plan.Base != plan.Source.ID {
				t.Errorf("base %s, present %s, last step %s", plan.Base, plan.Source.ID, last.Commit)
			}
			again, err := p.PlanRestore(t.Context(), j, plan)
			if err != nil || again != plan {
				t.Errorf("the same files are planned again: %v", err)
			}
			write("more", "x")
			if again, err = p.PlanRestore(t.Context(), j, plan); err != nil || again == plan {
				t.Errorf("other files are not planned again: %v", err)
			}
		})
	}
	p := gatetest.Place(t, op.TaskOpened{})
	if err := p.SaveStep(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := p.Restorable(t.Context(), 1); err != nil {
		t.Errorf("a saved step: %v", err)
	}
	if err := p.Restorable(t.Context(), 0); err == nil {
		t.Error("a step without a snapshot can be restored")
	}
}
