package runtime

import (
	"context"
	"os"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// RestoreWorld restores the files of a snapshot for a user, in a task that is not running. No
// step is left, nothing is compacted, and the next step continues from the current one. The name
// is one that workspace.Resolve takes. The next request informs the model; if nothing moves,
// nothing is recorded. After a crash the intent has no result: the process that opens the task
// next reports what happened.
func (t *Task) RestoreWorld(ctx context.Context, name string, o worldstate.RestoreOptions, resumed *op.TaskResumed) (
	res worldstate.Result, err error) {
	defer func() {
		if err != nil && t.hold.made { // a resume must still find the directory missing
			os.Remove(t.Place.Dir) // fails where anything is in it
		}
	}()
	id, err := workspace.Resolve(ctx, t.Ledger.Home, t.Place.World, t.Ledger.ID, name)
	if err != nil {
		return worldstate.Result{}, err
	}
	keep := context.WithoutCancel(ctx)
	if err := t.continueTask(ctx, keep, resumed, "Not run: the user took the task over before it began."); err != nil {
		return worldstate.Result{}, err
	}
	return t.Place.RestoreFiles(ctx, id, name, o)
}

// AbandonRestore ends, for a user, a jump or a restore whose files cannot be restored. The
// task must have been opened with Options.AbandonRestore, so that the interrupted operation
// was left half done. It touches no file: a jump that had begun ends at its step with the
// present files, and the model is shown which of them differ from that step. It reports
// whether anything was abandoned.
func (t *Task) AbandonRestore(ctx context.Context, resumed *op.TaskResumed) (bool, error) {
	if t.hold.recovery == nil && t.Ledger.State().Jump.Intended == nil && t.Ledger.State().World.Restoring == nil {
		return false, nil
	}
	return true, t.continueTask(ctx, context.WithoutCancel(ctx), resumed,
		"Not run: the user took the task over before it began.")
}
