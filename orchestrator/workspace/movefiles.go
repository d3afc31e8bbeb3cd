package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/worldstate"
)

// Restorable returns why the world of a step cannot be restored: worldstate.ErrCorrupt if the
// store lacks what the stream names.
func (p *Place) Restorable(ctx context.Context, step int) error {
	w, err := p.WorldOf(step)
	if err == nil {
		err = p.World.Has(ctx, w.Commit)
	}
	return NotRestorable(step, err)
}

// RestorePlan is how a jump restores the files.
type RestorePlan struct {
	Source worldstate.Snapshot // the world it starts from
	Base   worldstate.ID       // changes since then are the user's
	Plan   worldstate.Plan
}

// PlanRestore makes the present world durable and plans a jump's restore from it. No file is
// moved. If the world is still the one that an earlier plan starts from, it returns that plan.
func (p *Place) PlanRestore(ctx context.Context, j *state.Pending, earlier *RestorePlan) (*RestorePlan, error) {
	from, err := p.present()
	if err != nil {
		return nil, err
	}
	to, err := p.WorldOf(j.To)
	if err != nil {
		return nil, err
	}
	w := new(RestorePlan)
	if w.Source, err = p.SeeNow(ctx); err != nil {
		return nil, err
	}
	if earlier != nil && earlier.Source.ID == w.Source.ID {
		return earlier, nil
	}
	// The user's changes stay: up to here by their operations, from here on by the base.
	w.Base = w.Source.ID
	if (w.Source.ParentLost != "" || Lost(w.Source)) && from.Commit != "" {
		w.Base = from.Commit // the user's changes are unknown, or there are none
	}
	o := worldstate.PlanOptions{Base: w.Base, OverwriteEdits: j.Overwrite}
	if o.Edits, err = p.editsToKeep(j.To, j.Overwrite); err != nil {
		return nil, err
	}
	if w.Plan, err = PlanSince(ctx, p.World, to.Commit, o, p.before); err != nil {
		return nil, fmt.Errorf("the restore of step %d cannot be planned: %w", to.Step, err)
	}
	w.Base = cmp.Or(w.Plan.Base, w.Base)
	// A process that finishes the jump starts from this base: the missing files are then no deletions by the user.
	if Lost(w.Source) {
		w.Base = w.Source.ID
	}
	return w, nil
}

func (p *Place) editsToKeep(step int, overwrite bool) ([]worldstate.Edit, error) {
	if overwrite {
		return nil, nil
	}
	return EditsAfter(p.State(), p.Journal.Log(), step)
}

// before returns the snapshots on the path to the current step, the newest first.
func (p *Place) before(yield func(worldstate.ID) bool) {
	p.State().Steps.Back(p.State().Current)(func(id int) bool {
		w, err := p.WorldOf(id)
		return err != nil || w.Commit == "" || yield(w.Commit)
	})
}

// lastSaved returns the newest snapshot on the path to the current step; empty if there is none.
func (p *Place) lastSaved() worldstate.ID {
	for id := range p.before {
		return id
	}
	return ""
}

// moved is the result of a jump for the files.
type moved struct {
	After   SavedWorld          // the world as the jump left it
	Kept    []worldstate.Skip   // paths that are not as the target has them
	Lost    []worldstate.Skip   // restored files without what no snapshot holds
	Changed []worldstate.Change // paths that the jump changed
	Theirs  *op.WorldChanged    // the user's changes since the jump's intent; nil if none
}

// MoveForJump moves the files of a jump whose intent is recorded. planned is the plan that the
// intent names; if nil, another process recorded the intent, and a new plan is made. If the
// restore is abandoned, no file is moved.
func (p *Place) MoveForJump(ctx context.Context, j *state.Jumping, planned *RestorePlan) (m moved, err error) {
	if p.Abandon {
		m.Kept = p.leaveFiles(ctx, j)
		m.After, m.Theirs, _ = p.afterJump(ctx, j, m.Kept) // the jump ends even if nothing can be saved
		return m, nil
	}
	if m.Kept, m.Lost, err = p.moveFiles(ctx, j, planned); err != nil {
		return m, err
	}
	if m.After, m.Theirs, err = p.afterJump(ctx, j, m.Kept); err != nil {
		return m, err
	}
	m.Changed, err = p.changedBy(ctx, j, m.After.Commit, m.Kept)
	return m, err
}

// maxJumpRestores is how often one jump plans and restores again when the world changes
// meanwhile. Then the task stops with a report.
const maxJumpRestores = 2

// moveFiles restores the files of a jump's target, and returns what stays different and which
// restored files lost attributes.
func (p *Place) moveFiles(ctx context.Context, j *state.Jumping, planned *RestorePlan) (
	kept, lost []worldstate.Skip, err error) {
	if planned != nil && planned.Plan.Hash != j.Plan {
		return nil, nil, fmt.Errorf("restore the world of step %d: the plan made is not the one intended", j.To)
	}
	for try := 1; ; try++ {
		if planned == nil {
			if planned, err = p.planMove(ctx, j); err != nil {
				return nil, nil, err
			}
		}
		kept = planned.Plan.Keep
		if !planned.Plan.Empty() { // otherwise an earlier process restored it
			var res worldstate.Result
			res, err = p.examined(ctx, func() (worldstate.Result, error) { return p.World.Restore(ctx, planned.Plan) })
			if err == nil {
				err = p.World.Sync() // the end of a jump is recorded when it is durable
			}
			kept, lost = res.Kept, append(lost, res.LostAttributes...)
		}
		if err == nil {
			return Unreadable(kept, planned.Source.Skipped), lost, nil
		}
		if !errors.Is(err, worldstate.ErrStale) || try >= maxJumpRestores {
			return nil, nil, fmt.Errorf("restore the world of step %d: %w", j.To, err)
		}
		planned = nil // the world changed since the plan
	}
}

// examined restores files by move. A file that was harmless when its snapshot was taken can be
// one that git runs by now: an ignored HEAD, which no snapshot has, makes a directory one of git's.
// A recorded session's commands are not ours to examine.
func (p *Place) examined(ctx context.Context, move func() (worldstate.Result, error)) (
	res worldstate.Result, err error) {
	if p.State().Opened.Origin != nil {
		return move()
	}
	note, err := p.Sandbox.examine(ctx, func() (err error) {
		res, err = move()
		return err
	})
	if note != "" {
		res.Kept = append(res.Kept, worldstate.Skip{Path: ".", Reason: note})
	}
	return res, err
}

// planMove plans from the present world for a recorded intent.
func (p *Place) planMove(ctx context.Context, j *state.Jumping) (*RestorePlan, error) {
	var o worldstate.PlanOptions // j.Overwrite covers what is in j.FromCommit
	var err error
	if o.Edits, err = p.editsToKeep(j.To, j.Overwrite); err != nil {
		return nil, err
	}
	w := new(RestorePlan)
	w.Source, err = p.World.Save(ctx, worldstate.SaveOptions{
		Message: fmt.Sprintf("during the jump to step %d", j.To), Parent: worldstate.ID(j.FromCommit),
		Ref: fmt.Sprintf("pre-jump-%d", p.State().Last),
	})
	if err != nil {
		return nil, fmt.Errorf("save the world during the jump to step %d: %w", j.To, err)
	}
	o.Base = BaseOf(j)
	if Lost(w.Source) {
		o.Base = w.Source.ID
	}
	if w.Plan, err = p.World.Plan(ctx, worldstate.ID(j.ToCommit), &o); err != nil {
		return nil, fmt.Errorf("plan the jump to step %d: %w", j.To, err)
	}
	return w, nil
}

// afterJump saves the world after a jump if it differs from the target, and returns what the
// user has changed since the jump's intent.
func (p *Place) afterJump(ctx context.Context, j *state.Jumping, kept []worldstate.Skip) (
	SavedWorld, *op.WorldChanged, error) {
	after := SavedWorld{Step: j.To, Commit: worldstate.ID(j.ToCommit)}
	// Nothing stayed, so that the directory is the target's and needs no snapshot of its own.
	if len(kept) == 0 {
		return after, nil, nil
	}
	s, err := p.World.Save(ctx, worldstate.SaveOptions{
		Message: fmt.Sprintf("after the jump to step %d", j.To), Parent: after.Commit,
		Ref: fmt.Sprintf("jumped-%d", j.Seq),
	})
	if err != nil {
		return after, nil, fmt.Errorf("save the world after the jump to step %d: %w", j.To, err)
	}
	after.Commit, after.Tree = s.ID, s.Tree
	if !p.Abandon && !slices.ContainsFunc(kept, worldstate.Skip.Fresh) {
		return after, nil, nil
	}
	theirs, err := p.changedMeanwhile(ctx, BaseOf(j), worldstate.ID(j.ToCommit), s)
	return after, theirs, err
}

// keptAbandoned is why a path stays that a jump would have changed.
const keptAbandoned = "the restore was abandoned"

// leaveFiles returns what of the directory differs from a jump's target, if the jump ends
// without touching a file. An error does not keep the jump from ending.
func (p *Place) leaveFiles(ctx context.Context, j *state.Jumping) []worldstate.Skip {
	plan, err := p.World.Plan(ctx, worldstate.ID(j.ToCommit), &worldstate.PlanOptions{OverwriteEdits: true})
	if err != nil {
		why := "; what differs could not be found out: " + quote.OneLine(err.Error(), notice.MaxDelivered)
		return []worldstate.Skip{{Path: ".", Reason: keptAbandoned + why}}
	}
	kept := plan.Keep
	for _, path := range append(plan.Write, plan.Delete...) {
		kept = append(kept, worldstate.Skip{Path: path, Reason: keptAbandoned})
	}
	return kept
}

// changedBy lists the paths that a jump changed, computed from the commits before and after
// it, so that a jump finished after a crash reports all its changes. Paths that were not
// restored are omitted.
func (p *Place) changedBy(ctx context.Context, j *state.Jumping, after worldstate.ID, kept []worldstate.Skip) (
	[]worldstate.Change, error) {
	changes, err := p.World.Diff(ctx, worldstate.ID(j.FromCommit), after)
	if err != nil {
		return nil, fmt.Errorf("list what the jump to step %d changed: %w", j.To, err)
	}
	stays := make(map[string]bool)
	for _, k := range kept {
		stays[k.Path] = !k.Again()
	}
	return slices.DeleteFunc(changes, func(c worldstate.Change) bool { return stays[c.Path] }), nil
}

// RestoreFiles restores a snapshot's files for a user, and records it: the intent before the
// first file is moved, the result after the last. If nothing moves, nothing is recorded.
func (p *Place) RestoreFiles(ctx context.Context, id worldstate.ID, name string, o worldstate.RestoreOptions) (
	worldstate.Result, error) {
	keep := context.WithoutCancel(ctx)
	step := p.StepAt(id, name)
	if err := p.keepEdits(keep, step, &o); err != nil {
		return worldstate.Result{}, err
	}
	o.Intend = func(plan worldstate.Plan) error {
		return p.Record(keep, &op.RestoreIntended{
			FromCommit: string(plan.Source), ToCommit: string(plan.Target), ToStep: step, Paths: o.Paths,
			Overwrite: o.OverwriteEdits, Plan: plan.Hash, By: op.ByUser, Lost: plan.Lost,
		})
	}
	res, err := p.examined(ctx, func() (worldstate.Result, error) { return p.World.RestoreTo(ctx, id, o) })
	if err == nil {
		err = p.World.Sync()
	}
	r := p.State().World.Restoring
	if r == nil {
		return res, err
	}
	if err != nil {
		if told := p.TellRestore(keep); !errors.Is(told, worldstate.ErrUnfinished) { // otherwise recovery reports it
			err = errors.Join(err, told)
		}
		return res, err
	}
	b := resultOf(r)
	b.Written, b.Deleted, b.Kept = len(res.Written), len(res.Deleted), notice.FirstN(notice.Skips(res.Kept),
		notice.MaxListed)
	b.LostAttributes = notice.FirstN(notice.Skips(res.LostAttributes), notice.MaxListed)
	b.Notice = notice.Restored(b, p.State().Current, res)
	return res, p.recordRestored(keep, r, b, res.Kept)
}

// keepEdits makes a restore keep what the user changed after the step, up to here by
// operations and from here on by the base.
func (p *Place) keepEdits(ctx context.Context, step int, o *worldstate.RestoreOptions) error {
	was, err := p.present()
	if err != nil {
		return err
	}
	now, err := p.SeeNow(ctx)
	if err != nil {
		return err
	}
	if Lost(now) || now.ParentLost != "" {
		o.Base = was.Commit
	}
	o.Edits, err = p.editsToKeep(step, o.OverwriteEdits)
	return err
}

// recordRestored records the end of a restore and the world after it: later differences count
// as changes. Paths that the user chose, and what they changed meanwhile, are theirs from now
// on. If the world cannot be saved, the snapshot before is the base.
func (p *Place) recordRestored(ctx context.Context, r *op.RestoreIntended, b *op.WorldRestored,
	kept []worldstate.Skip) error {
	s, err := p.World.Save(ctx, worldstate.SaveOptions{
		Message: "after the user restored files", Parent: worldstate.ID(r.FromCommit),
		Ref: fmt.Sprintf("restored-%d", p.State().Last),
	})
	if err != nil {
		return p.Record(ctx, b)
	}
	b.Base, b.Tree = string(s.ID), s.Tree
	var theirs *op.WorldChanged
	switch {
	case len(r.Paths) > 0 && !r.Lost:
		if theirs, err = p.changeOf(ctx, state.ChangedByUser, worldstate.ID(r.FromCommit), "", s); err == nil {
			theirs.Notice = "" // b informs the model
		}
	case b.Interrupted || slices.ContainsFunc(kept, worldstate.Skip.Fresh):
		theirs, err = p.changedMeanwhile(ctx, worldstate.ID(r.FromCommit), worldstate.ID(r.ToCommit), s)
	}
	if err != nil || theirs == nil || theirs.NChanged == 0 {
		return p.Record(ctx, b)
	}
	return p.Record(ctx, b, theirs) // in this order: b may forget the changes before it
}

func resultOf(r *op.RestoreIntended) *op.WorldRestored {
	return &op.WorldRestored{From: r.FromCommit, To: r.ToCommit, ToStep: r.ToStep, Paths: r.Paths, By: r.By}
}

// TellRestore ends a restore that has an intent and no result, by comparing the files with the
// world before it, which includes all changes since. No file is moved.
func (p *Place) TellRestore(ctx context.Context) error {
	r := p.State().World.Restoring
	o := worldstate.PlanOptions{Paths: r.Paths, OverwriteEdits: true}
	back, err := p.World.Plan(ctx, worldstate.ID(r.FromCommit), &o)
	if errors.Is(err, worldstate.ErrUnfinished) {
		return fmt.Errorf("look what became of the restore to %.12s: %w", r.ToCommit, err)
	}
	res := worldstate.Result{Written: back.Delete}
	for _, path := range back.Write { // what differs from the world before
		if _, err := p.root.Lstat(filepath.FromSlash(strings.TrimSuffix(path, "/"))); errors.Is(err, fs.ErrNotExist) {
			res.Deleted = append(res.Deleted, path)
		} else {
			res.Written = append(res.Written, path)
		}
	}
	slices.Sort(res.Written)
	b := resultOf(r)
	b.Written, b.Deleted, b.Interrupted, b.Abandoned = len(res.Written), len(res.Deleted), true, p.Abandon
	switch {
	case errors.Is(err, worldstate.ErrNoPath): // in neither world: it had no effect
	case err != nil: // the store is damaged; the task continues
		b.Notice = notice.Restored(b, p.State().Current, res) +
			fmt.Sprintf("\nWhat it changed could not be found out: %v.", err)
	case b.Written+b.Deleted > 0:
		b.Notice = notice.Restored(b, p.State().Current, res)
	}
	return p.recordRestored(ctx, r, b, nil)
}

// StepAt returns the step that ended with a commit. Without a step number in the name, it is
// the last such step, since a step that changed nothing has the previous commit. It returns -1
// if there is none, as far as that can be read.
func (p *Place) StepAt(commit worldstate.ID, name string) int {
	return StepWith(p.State().Steps.Len(), strings.TrimPrefix(name, p.ID+"@"), func(id int) bool {
		w, err := p.WorldOf(id)
		return err == nil && w.Commit == commit
	})
}

// ChangedSince lists the files that differ from a checkpoint's.
func (p *Place) ChangedSince(ctx context.Context, id int) (names []string, unknown string) {
	then, err := p.CommitAt(id)
	if err != nil {
		return nil, err.Error()
	}
	now, err := p.CommitAt(p.State().Current)
	if err != nil {
		return nil, err.Error()
	}
	if then == "" || now == "" {
		return nil, "there is no snapshot to compare with"
	}
	changes, err := p.World.Diff(ctx, then, now)
	if err != nil {
		return nil, err.Error()
	}
	return notice.Paths(changes), ""
}
