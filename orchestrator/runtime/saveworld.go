package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// saveWorld ends the step under way with a checkpoint. A world that cannot be
// saved does not stop the agent: the step has no checkpoint, and the mark says so.
func (t *Task) saveWorld(ctx context.Context) error {
	id := t.state.NextStep()
	parent := t.state.Current
	var err error
	if id > 0 {
		if t.seen, err = t.present(); err != nil {
			return err
		}
	}
	before, partial := t.seen.Commit, t.partial
	t.partial = nil
	if before == "" {
		if before, err = t.commitAt(parent); err != nil {
			return err
		}
	}
	seq, hash := t.journal.Log().Last()
	save := worldstate.SaveOptions{
		Message: t.saveMessage(id), Parent: before, Ref: fmt.Sprint(id),
		Trailers: [][2]string{{workspace.TrailerTask, t.ID}, {workspace.TrailerOp, fmt.Sprintf("%d %x", seq, hash)}},
	}
	snap, err := t.world.Save(ctx, save)
	if errors.Is(err, worldstate.ErrUnknown) || errors.Is(err, worldstate.ErrCorrupt) {
		save.Parent = "" // the parent is lost: a checkpoint without history beats none
		snap, err = t.world.Save(ctx, save)
	}
	b := &op.WorldSaved{Parent: parent, Mark: t.stepMark(id) + t.citeLine(id)}
	other, late := "", false
	if t.opts.Disturbed != nil && err == nil {
		if other, late = t.opts.Disturbed(); late {
			err = errLate
		}
	}
	if err != nil {
		b.Error = err.Error()
		b.Mark = fmt.Sprintf("[step %d, without checkpoint: %s]", id, notice.OneLine(b.Error, notice.MaxDelivered))
		return t.record(ctx, b)
	}
	b.Commit, b.Tree, b.Complete = string(snap.ID), snap.Tree, snap.Complete
	b.Skipped, b.Files = notice.FirstN(notice.Skips(snap.Skipped), notice.MaxListed), snap.Files
	if snap.ParentLost != "" {
		b.Lost = []string{snap.ParentLost}
		b.Mark += fmt.Sprintf("\n(%s)", notice.OneLine(snap.ParentLost, notice.MaxDelivered))
	}
	if id > 0 {
		if theirs, err := t.quiet(ctx, snap); err == nil && theirs != nil {
			if err := t.postChange(ctx, theirs); err != nil {
				return err
			}
			return t.record(ctx, b)
		}
	}
	if other != "" && id > 0 && t.seen.Tree != snap.Tree {
		return t.saveMixed(ctx, b, snap, other)
	}
	changed := append(partial, snap.ChangedPaths...)
	slices.Sort(changed)
	changed = slices.Compact(changed)
	b.Changed, b.NChanged = notice.FirstN(changed, notice.MaxListed), len(changed)
	return t.record(ctx, b)
}

// errLate: the snapshot may hold what the agent did after the step.
var errLate = errors.New("the agent went on before the directory was saved")

// saveMixed records the end of a step in which another program may have changed files,
// too. Whose a change is cannot be told, so that jumps keep all of them.
func (t *Task) saveMixed(ctx context.Context, b *op.WorldSaved, snap worldstate.Snapshot, other string) error {
	if t.seen.Commit == "" || snap.ParentLost != "" || workspace.Lost(snap) { // there is nothing to compare with
		b.Commit, b.Tree, b.Error = "", "", "mixed with changes of "+other
		b.Mark = fmt.Sprintf("[step %d, without checkpoint: %s]", t.state.NextStep(), b.Error)
		return t.record(ctx, b)
	}
	theirs, err := t.changeOf(ctx, state.ChangedUnknown, t.seen.Commit, "", snap)
	if err != nil {
		return err
	}
	b.Mixed = other
	theirs.Notice = notice.Mixed(other, theirs.Changed, theirs.NChanged)
	if err := t.postChange(ctx, theirs); err != nil {
		return err
	}
	return t.record(ctx, b)
}

func (t *ledger) saveMessage(id int) string {
	if id == 0 {
		return "step 0: the task's beginning"
	}
	calls := t.state.Steps.At(id).Calls
	switch {
	case !t.state.Dirty:
		return fmt.Sprintf("changed outside the agent's calls, before step %d ended", id)
	case len(calls) == 0:
		return fmt.Sprintf("step %d: an answer", id)
	}
	return fmt.Sprintf("step %d: %s", id, notice.List(calls, len(calls)))
}
