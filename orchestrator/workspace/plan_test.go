package workspace_test

import (
	"testing"

	"anamnesis/orchestrator/workspace"
)

// TestStepWith: several steps may have ended with one commit. The one that the snapshot's name
// says is meant, step 0 included; else the last of them.
func TestStepWith(t *testing.T) {
	same := func(id int) bool { return id != 1 }
	for name, want := range map[string]int{"0": 0, "2": 2, "1": 3, "4": 3, "-1": 3, "x": 3} {
		if got := workspace.StepWith(4, name, same); got != want {
			t.Errorf("StepWith(4, %q) = %d, want %d", name, got, want)
		}
	}
	if got := workspace.StepWith(4, "2", func(int) bool { return false }); got >= 0 {
		t.Errorf("no step ended with the commit, StepWith = %d", got)
	}
}
