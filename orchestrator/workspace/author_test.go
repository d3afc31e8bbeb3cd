package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/state"
)

// TestAuthor: a change that no call made is the user's, unless a background command may have made it,
// even one whose beginning the state does not have yet.
func TestAuthor(t *testing.T) {
	for _, begun := range []bool{false, true} {
		p := gatetest.Place(t, op.TaskOpened{})
		if err := p.SaveStep(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		if begun {
			if err := p.Journal.Post(t.Context(), &op.JobStarted{Job: "bg_1", Call: "c1"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(p.Dir, "f"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := p.SeeNow(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.ApplyQueued(); err != nil {
			t.Fatal(err)
		}
		changes := p.State().World.Changes
		if len(changes) != 1 {
			t.Fatalf("begun %v: changes %v", begun, changes)
		}
		ops, err := p.Ops(op.Range{First: changes[0], Last: changes[0]})
		if err != nil {
			t.Fatal(err)
		}
		want := state.ChangedByUser
		if begun {
			want = state.ChangedUnknown
		}
		if by := ops[0].Body.(*op.WorldChanged).By; by != want {
			t.Errorf("begun %v: changed by %s, want %s", begun, by, want)
		}
	}
}
