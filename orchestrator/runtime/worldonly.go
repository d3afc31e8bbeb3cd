package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// RestoreWorld brings the files back to a snapshot for a user, in a task that
// is not running, and nothing else: no step is left, nothing is folded, and the
// next step goes on from the current one. The name is one that workspace.Resolve
// takes. The model is told what was done with its next request; where
// nothing is to be moved, nothing is recorded. A crash leaves the intent without
// a result: whoever takes the task over tells what became of it.
func (t *Task) RestoreWorld(ctx context.Context, name string, o worldstate.RestoreOptions, resumed *op.TaskResumed) (res worldstate.Result, err error) {
	defer func() {
		if err != nil && t.made { // a resume is to be refused as before
			os.Remove(t.Dir) // fails where anything is in it
		}
	}()
	id, err := workspace.Resolve(ctx, t.home, t.world, t.ID, name)
	if err != nil {
		return worldstate.Result{}, err
	}
	keep := context.WithoutCancel(ctx)
	if err := t.takeOver(ctx, keep, resumed, "Not run: the person took the task over before it began."); err != nil {
		return worldstate.Result{}, err
	}
	step := t.stepAt(id, name)
	if err := t.keepEdits(keep, step, &o); err != nil {
		return worldstate.Result{}, err
	}
	o.Intend = func(p worldstate.Plan) error {
		return t.record(keep, &op.RestoreIntended{
			FromCommit: string(p.Source), ToCommit: string(p.Target), ToStep: step, Paths: o.Paths,
			Overwrite: o.OverwriteEdits, Plan: p.Hash, By: state.ByUser, Lost: p.Lost,
		})
	}
	res, err = t.world.RestoreTo(ctx, id, o)
	if err == nil {
		err = t.world.Settle()
	}
	r := t.state.Restoring
	if r == nil {
		return res, err
	}
	if err != nil {
		if told := t.tellRestore(keep); !errors.Is(told, worldstate.ErrUnfinished) { // else who recovers it tells
			err = errors.Join(err, told)
		}
		return res, err
	}
	b := resultOf(r)
	b.Written, b.Deleted, b.Kept = len(res.Written), len(res.Deleted), notice.FirstN(notice.Skips(res.Kept), notice.MaxListed)
	b.Notice = notice.Restored(b, t.state.Current, res)
	return res, t.recordRestored(keep, r, b, slices.ContainsFunc(res.Kept, worldstate.Skip.Fresh))
}

// AbandonRestore ends, for a user, a jump or a restore whose files cannot be
// brought back. The task must have been opened with Options.AbandonRestore, so that
// what was interrupted is left half done. No file is touched: a jump that had begun
// ends at its step with the files as they are, and the model is told which of them
// are not that step's. It reports whether anything was given up.
func (t *Task) AbandonRestore(ctx context.Context, resumed *op.TaskResumed) (bool, error) {
	if t.recovery == nil && t.state.Jumping == nil && t.state.Restoring == nil {
		return false, nil
	}
	return true, t.takeOver(ctx, context.WithoutCancel(ctx), resumed, "Not run: the person took the task over before it began.")
}

// keepEdits has a restore keep what the user changed after the step, up to here by
// operations and from here on by the base.
func (t *place) keepEdits(ctx context.Context, step int, o *worldstate.RestoreOptions) error {
	was, err := t.present()
	if err != nil {
		return err
	}
	now, err := t.seeNow(ctx)
	if err != nil {
		return err
	}
	if workspace.Lost(now) || now.ParentLost != "" {
		o.Base = was.Commit
	}
	o.Edits, err = t.kept(step, o.OverwriteEdits)
	return err
}

// recordRestored records the end of a restore, with the world it left: what comes
// after counts as a change. Paths that the user chose are theirs from now on, and so
// is what they changed meanwhile. Where the world cannot be saved, it counts from the
// snapshot before.
func (t *place) recordRestored(ctx context.Context, r *op.RestoreIntended, b *op.WorldRestored, meanwhile bool) error {
	s, err := t.world.Save(ctx, worldstate.SaveOptions{
		Message: "after the user restored files", Parent: worldstate.ID(r.FromCommit), Ref: fmt.Sprintf("restored-%d", t.state.Last),
	})
	if err != nil {
		return t.record(ctx, b)
	}
	b.Base, b.Tree = string(s.ID), s.Tree
	var theirs *op.WorldChanged
	switch {
	case len(r.Paths) > 0 && !r.Lost:
		if theirs, err = t.changeOf(ctx, state.ChangedByUser, worldstate.ID(r.FromCommit), "", s); err == nil {
			theirs.Notice = "" // b tells
		}
	case b.Interrupted || meanwhile:
		theirs, err = t.changedMeanwhile(ctx, worldstate.ID(r.FromCommit), worldstate.ID(r.ToCommit), s)
	}
	if err != nil || theirs == nil || theirs.NChanged == 0 {
		return t.record(ctx, b)
	}
	return t.record(ctx, b, theirs) // in this order: b may forget the changes before it
}

// resultOf begins the result of a restore that was intended.
func resultOf(r *op.RestoreIntended) *op.WorldRestored {
	return &op.WorldRestored{From: r.FromCommit, To: r.ToCommit, ToStep: r.ToStep, Paths: r.Paths, By: r.By}
}

// tellRestore ends a restore that has an intent and no result by what is found:
// how the files differ from the world before it, which includes what anybody
// changed since. No file is moved.
func (t *place) tellRestore(ctx context.Context) error {
	r := t.state.Restoring
	back, err := t.world.Plan(ctx, worldstate.ID(r.FromCommit), &worldstate.PlanOptions{Paths: r.Paths, OverwriteEdits: true})
	if errors.Is(err, worldstate.ErrUnfinished) {
		return fmt.Errorf("look what became of the restore to %.12s: %w", r.ToCommit, err)
	}
	res := worldstate.Result{Written: back.Delete}
	for _, path := range back.Write { // what the world before has otherwise
		if _, err := t.root.Lstat(filepath.FromSlash(strings.TrimSuffix(path, "/"))); errors.Is(err, fs.ErrNotExist) {
			res.Deleted = append(res.Deleted, path)
		} else {
			res.Written = append(res.Written, path)
		}
	}
	slices.Sort(res.Written)
	b := resultOf(r)
	b.Written, b.Deleted, b.Interrupted, b.Abandoned = len(res.Written), len(res.Deleted), true, t.opts.AbandonRestore
	switch {
	case errors.Is(err, worldstate.ErrNoPath): // in neither world: nothing came of it
	case err != nil: // the store is damaged; the task goes on
		b.Notice = notice.Restored(b, t.state.Current, res) + fmt.Sprintf("\nWhat it changed could not be found out: %v.", err)
	case b.Written+b.Deleted > 0:
		b.Notice = notice.Restored(b, t.state.Current, res)
	}
	return t.recordRestored(ctx, r, b, true)
}

// stepAt returns the step that ended with a commit. Without a step number in the
// name, it is the last such step, since a step that changed nothing has the commit
// before it. It returns -1 if no step did, as far as that can be read.
func (t *place) stepAt(commit worldstate.ID, name string) int {
	return workspace.StepWith(t.state.Steps.Len(), strings.TrimPrefix(name, t.ID+"@"), func(id int) bool {
		w, err := t.worldOf(id)
		return err == nil && w.Commit == commit
	})
}
