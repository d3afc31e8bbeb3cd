package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/worldstate"
)

// What changes in the directory while no call, background command or subagent
// runs is the user's. So that no step counts it as its own, the world is looked
// at before the first call of a reply that may write, before and after a wait for
// the user in the middle of its calls, before the first request of a turn, and
// before a jump or a restore. A step whose calls only read owns nothing.

// The authors of op.WorldChanged.
const (
	changedByUser  = "user"
	changedUnknown = "unknown" // a background command or a subagent was running
)

// errUnsaved: the world could not be looked at.
var errUnsaved = errors.New("the world as it is now cannot be saved")

// editsAfter reads what ChangesAfter names.
func editsAfter(s *state.State, stream interface {
	Get(seq uint64) (opstream.Record, error)
}, step int) ([]worldstate.Edit, error) {
	var out []worldstate.Edit
	for _, seq := range s.ChangesAfter(step) {
		rec, err := stream.Get(seq)
		if err != nil {
			return nil, fmt.Errorf("read what the user changed, op %d: %w", seq, err)
		}
		o, err := decode(rec)
		if err != nil {
			return nil, err
		}
		b, ok := o.Body.(*op.WorldChanged)
		if !ok {
			return nil, fmt.Errorf("%w: op %d is no change of the world", state.ErrStream, seq)
		}
		out = append(out, worldstate.Edit{From: worldstate.ID(b.From), Or: worldstate.ID(b.Or), To: worldstate.ID(b.To), Unknown: b.By != changedByUser})
	}
	return out, nil
}

// present gives the last snapshot of the world, a step's or not; no commit where
// the current step has none.
func (t *Task) present() (savedWorld, error) {
	if n := t.state.Now; n.Commit != "" {
		return savedWorld{t.state.Current, worldstate.ID(n.Commit), n.Tree}, nil
	}
	return t.worldOf(t.state.Current)
}

// seeNow is see from the state as it is folded, and folds what was seen.
func (t *Task) seeNow(ctx context.Context) (worldstate.Snapshot, error) {
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
func (t *Task) see(ctx context.Context, ours bool) (worldstate.Snapshot, error) {
	was := t.seen
	parent := was.commit
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
	seq, _ := t.log.Last()
	snap, err := t.world.Save(ctx, worldstate.SaveOptions{Message: message, Parent: parent, Ref: fmt.Sprintf("changed-%d", seq), RefIfNew: true})
	if err != nil {
		return snap, fmt.Errorf("%w: %w", errUnsaved, err)
	}
	if ours {
		t.partial = append(t.partial, snap.ChangedPaths...)
	}
	if (snap.ID == was.commit || lost(snap)) && !ours || snap.ParentLost != "" {
		return snap, nil
	}
	by := t.author()
	if ours || was.commit == "" || snap.Tree == was.tree {
		by = state.ChangedByAgent
	}
	b, err := t.changeOf(ctx, by, was.commit, "", snap)
	if err != nil {
		return snap, err
	}
	t.seen = savedWorld{was.step, snap.ID, snap.Tree}
	return snap, t.postChange(ctx, b)
}

// author says whose a change is that no call of this task made.
func (t *Task) author() string {
	if t.state.AuthorUnknown() || t.jobs != nil && t.jobs.begun() > t.state.JobsBegun {
		return changedUnknown
	}
	return changedByUser
}

// changeOf describes the change between two snapshots, without what equals a third,
// or, where that is given.
func (t *Task) changeOf(ctx context.Context, by string, was, or worldstate.ID, snap worldstate.Snapshot) (*op.WorldChanged, error) {
	b := &op.WorldChanged{By: by, From: string(was), Or: string(or), To: string(snap.ID), Tree: snap.Tree}
	if by == state.ChangedByAgent {
		return b, nil
	}
	list, err := t.world.Diff(ctx, was, snap.ID)
	if err == nil && or != "" {
		var other []worldstate.Change
		other, err = t.world.Diff(ctx, or, snap.ID)
		list = inBoth(list, other)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: list what changed: %w", errUnsaved, err)
	}
	b.Changed, b.NChanged = firstN(paths(list), maxListed), len(list)
	b.Notice = changedNotice(by, list)
	return b, nil
}

// changedMeanwhile describes what somebody else changed while a jump or a restore
// moved the files from source to target, maybe in a process that died: the paths
// that stand as in neither. Nil: there are none. The model is told by the end of the
// jump or the restore.
func (t *Task) changedMeanwhile(ctx context.Context, source, target worldstate.ID, snap worldstate.Snapshot) (*op.WorldChanged, error) {
	if lost(snap) {
		return nil, nil // a directory that is gone is nobody's deletion of each of its files
	}
	by := t.author()
	if t.opts.AbandonRestore {
		by = changedUnknown // a directory's mode may be the restore's
	}
	b, err := t.changeOf(ctx, by, source, target, snap)
	if err != nil || b.NChanged == 0 {
		return nil, err
	}
	b.Notice = ""
	return b, nil
}

// inBoth gives the changes of a whose path b names, too.
func inBoth(a, b []worldstate.Change) []worldstate.Change {
	named := make(map[string]bool, len(b))
	for _, c := range b {
		named[strings.TrimSuffix(c.Path, "/")] = true
	}
	return slices.DeleteFunc(a, func(c worldstate.Change) bool { return !named[strings.TrimSuffix(c.Path, "/")] })
}

// postChange posts a change, of a subagent in the task's own directory to the
// task that began it, too: whose jumps go back behind it.
func (t *Task) postChange(ctx context.Context, b *op.WorldChanged) error {
	if above := t.opts.changed; above != nil && b.By != state.ChangedByAgent {
		told := *b
		told.Task = t.ID
		if err := above(ctx, &told); err != nil {
			return err
		}
	}
	return t.post(ctx, b)
}

// quiet gives the change that a step without a call that may write did not make;
// nil where the snapshot it ends with is its own.
func (t *Task) quiet(ctx context.Context, snap worldstate.Snapshot) (*op.WorldChanged, error) {
	if t.state.Dirty || t.seen.commit == "" || t.seen.tree == snap.Tree || snap.ParentLost != "" || lost(snap) {
		return nil, nil
	}
	return t.changeOf(ctx, t.author(), t.seen.commit, "", snap)
}

// beginCalls looks at the world before the first call of a reply that may write.
func (t *Task) beginCalls(ctx context.Context, writes bool) error {
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
func (t *Task) beforeWrite(ctx context.Context) error {
	if t.dirty || t.looked {
		return nil
	}
	t.looked = true
	return t.seeOr(ctx, false)
}

// beforeWait keeps what the calls so far have changed apart from what the user
// changes while they are asked.
func (t *Task) beforeWait(ctx context.Context) error {
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
func (t *Task) seeOr(ctx context.Context, ours bool) error {
	_, err := t.see(ctx, ours)
	if errors.Is(err, errUnsaved) {
		return nil
	}
	return err
}

// changedNotice tells the model of files that it did not change.
func changedNotice(by string, list []worldstate.Change) string {
	if len(list) == 0 {
		return ""
	}
	var sb strings.Builder
	if by == changedByUser {
		sb.WriteString("[FILES] The user changed files while no call of yours ran. They are the user's: a jump keeps them.")
	} else {
		sb.WriteString("[FILES] Files changed between your calls, while something ran in the background; who changed them is not known. A jump keeps them.")
	}
	writeKinds(&sb, list, "New", "Changed", "Deleted")
	sb.WriteString("\nWhat you read of these files before may be out of date.")
	return sb.String()
}

// writeKinds names changes by what they are.
func writeKinds(sb *strings.Builder, list []worldstate.Change, added, changed, deleted string) {
	for _, group := range []struct {
		label string
		kinds []worldstate.ChangeKind
	}{
		{deleted, []worldstate.ChangeKind{worldstate.Deleted}},
		{added, []worldstate.ChangeKind{worldstate.Added}},
		{changed, []worldstate.ChangeKind{worldstate.Modified, worldstate.Mode, worldstate.Type}},
	} {
		var names []string
		for _, c := range list {
			if slices.Contains(group.kinds, c.Kind) {
				names = append(names, c.Path)
			}
		}
		if len(names) > 0 {
			fmt.Fprintf(sb, "\n%s (%d): %s.", group.label, len(names), pathList(names))
		}
	}
}

func pathList(names []string) string { return list(names, len(names)) }
