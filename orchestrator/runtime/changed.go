package runtime

import (
	"context"
	"errors"
	"fmt"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// errUnsaved: the world could not be looked at.
var errUnsaved = errors.New("the world as it is now cannot be saved")

// present returns the last snapshot of the world, a step's or not; no commit where
// the current step has none.
func (t *place) present() (workspace.SavedWorld, error) {
	if n := t.state.Now; n.Commit != "" {
		return workspace.SavedWorld{Step: t.state.Current, Commit: worldstate.ID(n.Commit), Tree: n.Tree}, nil
	}
	return t.worldOf(t.state.Current)
}

// seeNow is see from the state as it is folded, and folds what was seen.
func (t *place) seeNow(ctx context.Context) (worldstate.Snapshot, error) {
	var err error
	if t.seen, err = t.present(); err != nil {
		return worldstate.Snapshot{}, err
	}
	snap, err := t.see(ctx, false)
	if err != nil {
		return snap, err
	}
	return snap, t.settle()
}

// see saves the world as it is and posts what changed since t.seen: ours, if
// calls of the step under way made it, or else the user's.
func (t *place) see(ctx context.Context, ours bool) (worldstate.Snapshot, error) {
	was := t.seen
	parent := was.Commit
	if parent == "" {
		var err error
		if parent, err = t.commitAt(t.state.Current); err != nil {
			return worldstate.Snapshot{}, err
		}
	}
	message := "changed outside the agent's calls"
	if ours {
		message = fmt.Sprintf("in step %d, before a wait for the user", t.state.NextStep())
	}
	seq, _ := t.journal.Log().Last()
	snap, err := t.world.Save(ctx, worldstate.SaveOptions{Message: message, Parent: parent, Ref: fmt.Sprintf("changed-%d", seq)})
	if err != nil {
		return snap, fmt.Errorf("%w: %w", errUnsaved, err)
	}
	if ours {
		t.partial = append(t.partial, snap.ChangedPaths...)
	}
	if (snap.ID == was.Commit || workspace.Lost(snap)) && !ours || snap.ParentLost != "" {
		return snap, nil
	}
	by := t.author()
	if ours || was.Commit == "" || snap.Tree == was.Tree {
		by = state.ChangedByAgent
	}
	b, err := t.changeOf(ctx, by, was.Commit, "", snap)
	if err != nil {
		return snap, err
	}
	t.seen = workspace.SavedWorld{Step: was.Step, Commit: snap.ID, Tree: snap.Tree}
	return snap, t.postChange(ctx, b)
}

// author says whose a change is that no call of this task made.
func (t *place) author() string {
	if t.state.AuthorUnknown() || t.jobs != nil && t.jobs.Begun() > t.state.JobsBegun {
		return state.ChangedUnknown
	}
	return state.ChangedByUser
}

// changeOf describes the change between two snapshots, without what equals a third,
// or, where that is given.
func (t *place) changeOf(ctx context.Context, by string, was, or worldstate.ID, snap worldstate.Snapshot) (*op.WorldChanged, error) {
	b := &op.WorldChanged{By: by, From: string(was), Or: string(or), To: string(snap.ID), Tree: snap.Tree}
	if by == state.ChangedByAgent {
		return b, nil
	}
	list, err := t.world.Diff(ctx, was, snap.ID)
	if err == nil && or != "" {
		var other []worldstate.Change
		other, err = t.world.Diff(ctx, or, snap.ID)
		list = workspace.InBoth(list, other)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: list what changed: %w", errUnsaved, err)
	}
	b.Changed, b.NChanged = notice.FirstN(notice.Paths(list), notice.MaxListed), len(list)
	b.Notice = notice.Changed(by, list)
	return b, nil
}

// changedMeanwhile describes what somebody else changed while a jump or a restore
// moved the files from source to target, maybe in a process that died: the paths
// that stand as in neither. Nil: there are none. The model is told by the end of the
// jump or the restore.
func (t *place) changedMeanwhile(ctx context.Context, source, target worldstate.ID, snap worldstate.Snapshot) (*op.WorldChanged, error) {
	if workspace.Lost(snap) {
		return nil, nil // a directory that is gone is nobody's deletion of each of its files
	}
	by := t.author()
	if t.opts.AbandonRestore {
		by = state.ChangedUnknown // a directory's mode may be the restore's
	}
	b, err := t.changeOf(ctx, by, source, target, snap)
	if err != nil || b.NChanged == 0 {
		return nil, err
	}
	b.Notice = ""
	return b, nil
}

// postChange posts a change, of a subagent in the task's own directory to the
// task that began it, too: whose jumps go back behind it.
func (t *ledger) postChange(ctx context.Context, b *op.WorldChanged) error {
	if above := t.opts.changed; above != nil && b.By != state.ChangedByAgent {
		told := *b
		told.Task = t.ID
		if err := above(ctx, &told); err != nil {
			return err
		}
	}
	return t.journal.Post(ctx, b)
}

// quiet returns the change that a step without a call that may write did not make;
// nil where the snapshot it ends with is its own.
func (t *place) quiet(ctx context.Context, snap worldstate.Snapshot) (*op.WorldChanged, error) {
	if t.state.Dirty || t.seen.Commit == "" || t.seen.Tree == snap.Tree || snap.ParentLost != "" || workspace.Lost(snap) {
		return nil, nil
	}
	return t.changeOf(ctx, t.author(), t.seen.Commit, "", snap)
}

// beginCalls looks at the world before the first call of a reply that may write.
func (t *place) beginCalls(ctx context.Context, writes bool) error {
	var err error
	if t.seen, err = t.present(); err != nil {
		return err
	}
	t.dirty, t.looked = t.state.Dirty, false
	switch {
	case writes:
		return t.beforeWrite(ctx)
	case t.dirty: // calls before a crash; what these wait for is not theirs
		return t.beforeWait(ctx)
	}
	return nil
}

// beforeWrite looks at the world, before a call that may write, where no such call
// ran since the last look.
func (t *place) beforeWrite(ctx context.Context) error {
	if t.dirty || t.looked {
		return nil
	}
	t.looked = true
	return t.seeOr(ctx, false)
}

// beforeWait keeps what the calls so far have changed apart from what the user
// changes while they are asked.
func (t *place) beforeWait(ctx context.Context) error {
	if !t.dirty {
		if t.looked {
			t.looked = false
		}
		return nil
	}
	t.dirty, t.looked = false, false
	return t.seeOr(ctx, true)
}

// seeOr is see, and goes on where the world cannot be saved: the step's end says
// so.
func (t *place) seeOr(ctx context.Context, ours bool) error {
	_, err := t.see(ctx, ours)
	if errors.Is(err, errUnsaved) {
		return nil
	}
	return err
}
