package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/autorun"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/worldstate"
)

// SaveStep ends the step under way with a checkpoint. mark is what the model sees at the end
// of the step. If the world cannot be saved, the agent continues: the step has no checkpoint,
// and the mark says so.
func (p *Place) SaveStep(ctx context.Context, mark string) error {
	id := p.State().Steps.Next()
	parent := p.State().Current
	var err error
	if id > 0 {
		if p.seen, err = p.present(); err != nil {
			return err
		}
	}
	partial := p.partial
	gone := p.gone
	p.partial, p.gone = nil, nil
	before, err := p.commitOf(p.seen)
	if err != nil {
		return err
	}
	// The line's hash lets doctor notice a stream that has lost its end.
	seq, hash := p.Journal.Log().Last()
	save := worldstate.SaveOptions{
		Message: p.saveMessage(id), Parent: before, Ref: fmt.Sprint(id),
		Trailers: [][2]string{{TrailerTask, p.ID}, {TrailerOp, fmt.Sprintf("%d %x", seq, hash)}},
	}
	began := time.Now()
	snap, replaced, err := p.save(ctx, save)
	if errors.Is(err, worldstate.ErrUnknown) || errors.Is(err, worldstate.ErrCorrupt) {
		save.Parent = "" // the parent is lost: save a checkpoint without history
		snap, _, err = p.save(ctx, save)
	}
	b := &op.WorldSaved{Parent: parent, Mark: mark}
	// This is asked after the save: what the other agent did during it may be in the snapshot.
	other, late := "", false
	if p.Disturbed != nil && err == nil {
		if other, late = p.Disturbed(); late {
			err = errLate
		}
	}
	if err != nil {
		b.Error, b.Gone = err.Error(), p.World.Missing()
		b.Mark = fmt.Sprintf("[step %d, without checkpoint: %s]", id, quote.OneLine(b.Error, notice.MaxDelivered))
		return p.Record(ctx, b)
	}
	// This comes before the operation that ends the step, so that GitThen finds it at this step.
	if err := p.RecordGit(ctx, true); err != nil {
		return err
	}
	b.Commit, b.Tree, b.Complete = string(snap.ID), snap.Tree, snap.Complete
	b.Skipped, b.Files = notice.FirstN(notice.Skips(snap.Skipped), notice.MaxListed), snap.Files
	if snap.ParentLost != "" {
		b.Lost = []string{snap.ParentLost}
		b.Mark += fmt.Sprintf("\n(%s)", quote.OneLine(snap.ParentLost, notice.MaxDelivered))
	}
	if id > 0 && !replaced {
		// No call of this step wrote: the whole change is somebody else's, and the step lists none of its own.
		if theirs, err := p.quiet(ctx, snap); err == nil && theirs != nil {
			if err := p.postChange(ctx, theirs); err != nil {
				return err
			}
			return p.Record(ctx, b)
		}
	}
	if replaced {
		other = byReplaced
	}
	if other != "" && id > 0 && p.seen.Tree != snap.Tree {
		return p.saveMixed(ctx, b, snap, other)
	}
	var theirs []*op.WorldChanged
	known := true
	if id > 0 && p.State().World.Dirty {
		if theirs, known, err = p.beside(ctx, snap, began); err != nil {
			return err
		}
	}
	changed := append(partial, snap.ChangedPaths...)
	for _, t := range theirs {
		if err := p.postChange(ctx, t); err != nil {
			return err
		}
		changed = slices.DeleteFunc(changed, func(path string) bool {
			return t.By == state.ChangedByUser && slices.Contains(t.Only, strings.TrimSuffix(path, "/"))
		})
	}
	slices.Sort(changed)
	changed = slices.Compact(changed)
	b.Changed, b.NChanged = notice.FirstN(changed, notice.MaxListed), len(changed)
	if id > 0 {
		for _, path := range changed {
			if autorun.By(path, false) != "" {
				p.Autorun = append(p.Autorun, path)
			}
		}
	}
	b.IgnoredGone = notice.FirstN(append(gone, snap.IgnoredGone...), notice.MaxListed)
	b.Unobserved = !known && len(changed) > 0
	return p.Record(ctx, b)
}

// byReplaced names in WorldSaved.Mixed that another directory was put at the world's path.
const byReplaced = "another directory at this path"

// save saves the world. If another directory was put at its path, replaced is true, and that one
// is the world from now on: no call of the task is known to have made what is in it.
func (p *Place) save(ctx context.Context, o worldstate.SaveOptions) (
	snap worldstate.Snapshot, replaced bool, err error) {
	snap, err = p.World.Save(ctx, o)
	if replaced = errors.Is(err, worldstate.ErrReplaced); replaced {
		p.World.Accept()
		snap, err = p.World.Save(ctx, o)
	}
	return snap, replaced, err
}

// errLate: the snapshot may hold changes from after the step.
var errLate = errors.New("the agent went on before the directory was saved")

// saveMixed records the end of a step in which another program may also have changed files.
// The authors are unknown, so that jumps keep all changes.
func (p *Place) saveMixed(ctx context.Context, b *op.WorldSaved, snap worldstate.Snapshot, other string) error {
	p.seen.Commit = cmp.Or(p.seen.Commit, p.lastSaved())
	if p.seen.Commit == "" || snap.ParentLost != "" || Lost(snap) { // there is nothing to compare with
		b.Commit, b.Tree, b.Error = "", "", "mixed with changes of "+other
		b.Mark = fmt.Sprintf("[step %d, without checkpoint: %s]", p.State().Steps.Next(), b.Error)
		return p.Record(ctx, b)
	}
	theirs, err := p.changeOf(ctx, state.ChangedUnknown, p.seen.Commit, "", snap)
	if err != nil {
		return err
	}
	b.Mixed = other
	if theirs.Notice = notice.Mixed(other, theirs.Changed, theirs.NChanged); other == byReplaced {
		theirs.Notice = notice.Replaced(p.Dir, theirs.Changed, theirs.NChanged)
	}
	if err := p.postChange(ctx, theirs); err != nil {
		return err
	}
	return p.Record(ctx, b)
}

func (p *Place) saveMessage(id int) string {
	if id == 0 {
		return "step 0: the task's beginning"
	}
	calls := p.State().Steps.At(id).Calls
	switch {
	case !p.State().World.Dirty:
		return fmt.Sprintf("changed outside the agent's calls, before step %d ended", id)
	case len(calls) == 0:
		return fmt.Sprintf("step %d: an answer", id)
	}
	return fmt.Sprintf("step %d: %s", id, notice.List(calls, len(calls)))
}
