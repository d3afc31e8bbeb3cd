package runtime

import (
	"context"
	"os"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// RestoreWorld brings the files back to a snapshot for a user, in a task that
// is not running, and nothing else: no step is left, nothing is folded, and the
// next step continues from the current one. The name is one that workspace.Resolve
// takes. The model is told what was done with its next request; where
// nothing is to be moved, nothing is recorded. A crash leaves the intent without
// a result: whoever takes the task over tells what became of it.
func (t *Task) RestoreWorld(ctx context.Context, name string, o worldstate.RestoreOptions, resumed *op.TaskResumed) (res worldstate.Result, err error) {
	defer func() {
		if err != nil && t.made { // a resume is to be refused as before
			os.Remove(t.Dir) // fails where anything is in it
		}
	}()
	id, err := workspace.Resolve(ctx, t.Home, t.World, t.ID, name)
	if err != nil {
		return worldstate.Result{}, err
	}
	keep := context.WithoutCancel(ctx)
	if err := t.takeOver(ctx, keep, resumed, "Not run: the user took the task over before it began."); err != nil {
		return worldstate.Result{}, err
	}
	return t.RestoreFiles(ctx, id, name, o)
}

// AbandonRestore ends, for a user, a jump or a restore whose files cannot be
// brought back. The task must have been opened with Options.AbandonRestore, so that
// what was interrupted is left half done. No file is touched: a jump that had begun
// ends at its step with the files as they are, and the model is told which of them
// are not that step's. It reports whether anything was given up.
func (t *Task) AbandonRestore(ctx context.Context, resumed *op.TaskResumed) (bool, error) {
	if t.recovery == nil && t.State().Jumping == nil && t.State().Restoring == nil {
		return false, nil
	}
	return true, t.takeOver(ctx, context.WithoutCancel(ctx), resumed, "Not run: the user took the task over before it began.")
}
