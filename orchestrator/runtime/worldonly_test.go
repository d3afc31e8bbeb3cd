package runtime

import (
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/optest"
	"anamnesis/orchestrator/state"
)

// TestRestoreMovedNothing: a restore that failed or was interrupted before it
// moved a file leaves what is remembered of calls as it was.
func TestRestoreMovedNothing(t *testing.T) {
	for _, notice := range []string{"", "[WORLD] The user began…"} {
		s := state.State{
			Calls: state.Calls{Undone: map[loop.Key]state.Undone{1: {Step: 1}}},
			World: state.World{Restoring: &op.RestoreIntended{}},
		}
		if err := state.Fold(&s, op.Op{Seq: 1, Body: &op.WorldRestored{Interrupted: true, Notice: notice}}); err != nil {
			t.Fatal(err)
		}
		moved := notice != ""
		if s.World.Restoring != nil || (s.Calls.Undone == nil) != moved || (s.Calls.Repeats.Epoch > 0) != moved {
			t.Errorf("notice %q: restoring %v, undone %v, epoch %d", notice, s.World.Restoring, s.Calls.Undone,
				s.Calls.Repeats.Epoch)
		}
	}
}

// TestEditsSince: what a restore of a part left is what edits count from until the
// next step ends or a jump is made; a restore without a base of its own leaves it.
func TestEditsSince(t *testing.T) {
	saved := &op.WorldSaved{Commit: "c", Tree: "t", Parent: 0}
	for name, end := range map[string]op.Op{
		"step": {Seq: 5, Step: 1, Body: saved},
		"jump": {Seq: 5, Step: 1, Body: &op.JumpDone{To: 0}},
	} {
		s := optest.Fold(t, state.Fold, []op.Op{
			{Seq: 1, Body: &op.TaskOpened{Task: "t"}}, {Seq: 2, Body: saved},
			{Seq: 3, Body: &op.WorldRestored{Base: "b"}}, {Seq: 4, Body: &op.WorldRestored{}},
		})

		if s.World.Now.Commit != "b" {
			t.Errorf("%s: edits count from %q, want b", name, s.World.Now.Commit)
		}
		if err := state.Fold(s, end); err != nil {
			t.Fatal(err)
		}
		if s.World.Now.Commit != "" {
			t.Errorf("%s: edits still count from %q", name, s.World.Now.Commit)
		}
	}
}
