package orchestrator

import (
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
)

// TestRestoreMovedNothing: a restore that failed or was interrupted before it
// moved a file leaves what is remembered of calls as it was.
func TestRestoreMovedNothing(t *testing.T) {
	for _, notice := range []string{"", "[WORLD] The person began…"} {
		s := State{Undone: map[loop.Key]Undone{1: {Step: 1}}, Restoring: &op.RestoreIntended{}}
		if err := Fold(&s, op.Op{Seq: 1, Body: &op.WorldRestored{Interrupted: true, Notice: notice}}); err != nil {
			t.Fatal(err)
		}
		moved := notice != ""
		if s.Restoring != nil || (s.Undone == nil) != moved || (s.Repeats.Epoch > 0) != moved {
			t.Errorf("notice %q: restoring %v, undone %v, epoch %d", notice, s.Restoring, s.Undone, s.Repeats.Epoch)
		}
	}
}
