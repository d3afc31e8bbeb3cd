package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// maxJumpRestores is how often one jump plans and restores anew when the world
// changes under it. After that the task stops with a report.
const maxJumpRestores = 2

// JumpNow makes a jump for a user in a task that is not running. What a
// dead process left open is closed first: its jump is finished if it had begun,
// and is the one that was asked for if it leads there, and dropped if not, and
// calls that never began are not begun. A world that
// the store no longer holds is ErrNotJumped and worldstate.ErrCorrupt.
func (t *Task) JumpNow(ctx context.Context, j op.JumpRequested, resumed *op.TaskResumed) (*op.JumpDone, error) {
	if err := t.state.CanJump(j.To); err != nil {
		return nil, err
	}
	// Once begun, a jump is made: an interruption cuts the pass short.
	keep, was := context.WithoutCancel(ctx), t.state.Jumping
	if err := t.takeOver(ctx, keep, resumed, "Not run: the person jumped before it began."); err != nil {
		return nil, err
	}
	if was != nil && was.To == j.To && t.state.Current == j.To && (was.Overwrite || !j.Overwrite) {
		if done, err := t.jumpEnd(was.Seq); err != nil || done.Folded || !j.Fold {
			return done, err
		}
	}
	begun := t.state.Last
	j.By = state.ByUser
	bodies := []op.Body{&j}
	if p := t.state.Pending; p != nil { // one write: one of the two jumps stands
		bodies = append(dropped(p, "the person jumped instead"), &j)
	}
	if err := t.record(keep, bodies...); err != nil {
		return nil, err
	}
	for t.state.Pending != nil {
		if _, err := t.perform(ctx, keep, state.Next(&t.state, t.limits())); err != nil {
			return nil, err
		}
	}
	done, err := t.jumpEnd(begun)
	if errors.Is(err, state.ErrNotJumped) {
		if gone := t.jumpable(keep, j); gone != nil { // the record has no more than words
			return nil, fmt.Errorf("%w: %w", state.ErrNotJumped, gone)
		}
	}
	return done, err
}

// takeOver records that this process goes on, and closes what a dead one left
// open: its jump is finished if it had begun, its restore told of, and calls that never began are not
// begun, as notRun says.
func (t *Task) takeOver(ctx, keep context.Context, resumed *op.TaskResumed, notRun string) error {
	if err := t.record(keep, resumed); err != nil {
		return err
	}
	if err := errors.Join(t.adoptSubagents(keep), t.closeLostSubagents(keep)); err != nil {
		return err
	}
	for t.state.Jumping != nil || t.state.Restoring != nil || t.state.Reply != nil {
		act := state.Next(&t.state, t.limits())
		if act.Kind == state.ActRunCalls {
			for _, c := range act.Calls {
				if err := t.finishCall(keep, c.Call, tool.Result{IsError: true, Text: notRun}, 0, 0); err != nil {
					return err
				}
			}
			if err := t.settle(); err != nil {
				return err
			}
			continue
		}
		if _, err := t.perform(ctx, keep, act); err != nil {
			return err
		}
	}
	return nil
}

// jumpEnd reads how the jump that was requested after op seq ended.
func (t *ledger) jumpEnd(seq uint64) (*op.JumpDone, error) {
	ops, err := t.ops(op.Range{First: seq + 1, Last: t.state.Last})
	if err != nil {
		return nil, err
	}
	for _, o := range slices.Backward(ops) {
		switch b := o.Body.(type) {
		case *op.JumpDone:
			return b, nil
		case *op.JumpDropped:
			return nil, fmt.Errorf("%w: %s", state.ErrNotJumped, b.Why)
		case *op.JumpRequested:
			return nil, fmt.Errorf("%w: a jump was requested and not made", state.ErrStream)
		}
	}
	return nil, fmt.Errorf("%w: a jump ended without a record", state.ErrStream)
}

// performJump makes the pending jump: pass, plan, intent, restore, notice.
// Every file and commit an operation names is durable before it is named, so
// that a crash anywhere leaves the jump either not begun or to be finished.
// What runs in the background is ended when the jump is known to have a way,
// since nothing begins it again. When ctx ends, the pass is cut short and the
// extractor writes in the model's place; the jump is made all the same.
func (t *Task) performJump(ctx, keep context.Context) error {
	j := t.state.Pending
	from, to := t.state.Current, j.To
	if err := t.jumpable(keep, j.JumpRequested); err != nil {
		return t.dropJump(keep, err.Error())
	}
	if err := workspace.RecreateDir(t.Dir); err != nil { // a command may have removed it
		return t.dropJump(keep, err.Error())
	}
	w, err := t.planRestore(keep, j, nil)
	if err != nil {
		return t.dropJump(keep, err.Error())
	}
	discarded := t.state.Discarded(to)
	ended, err := t.endJobs(keep, discarded)
	if err != nil {
		return err
	}
	ranges := t.state.Ranges(discarded)
	if err := t.passes(ctx, keep, j, discarded); errors.Is(err, opstream.ErrCorrupt) {
		return t.dropJump(keep, err.Error()) // else no resume could ever go on
	} else if err != nil {
		return err
	}
	// The pass took its time: what changed meanwhile is saved, too.
	if w, err = t.planRestore(keep, j, w); err != nil {
		why := err.Error()
		if len(ended) > 0 {
			why += "; ended for it all the same: " + notice.List(ended, len(ended))
		}
		return t.dropJump(keep, why)
	}
	if err := t.record(keep, &op.JumpIntended{
		From: from, To: to, Reason: j.Reason, By: j.By,
		Discarded: ranges, Tokens: t.state.RangeTokens(ranges),
		FromCommit: string(w.source.ID), ToCommit: string(w.plan.Target), Base: string(w.base), Overwrite: j.Overwrite, Plan: w.plan.Hash, Jobs: ended,
		Backward: t.state.OnPath(to, from), Conflicts: notice.FirstN(w.plan.Conflicts, notice.MaxListed), NConflicts: len(w.plan.Conflicts),
	}); err != nil {
		return err
	}
	return t.finishJump(keep, w)
}

// jumpable says why a jump cannot be made, as far as that is known before anything
// is done for it: the world of the step is not restorable, or what it has to
// read is damaged, of which the model is told.
func (t *Task) jumpable(ctx context.Context, j op.JumpRequested) error {
	if err := t.restorable(ctx, j.To); err != nil {
		return err
	}
	var known uint64
	if t.taint != nil {
		known = t.taint.Last()
	}
	return workspace.ReadableFor(&t.state, t.journal.Log(), j, known)
}

// restorable says why the world of a step cannot be brought back, with
// worldstate.ErrCorrupt where the store lacks what the stream names.
func (t *place) restorable(ctx context.Context, step int) error {
	w, err := t.worldOf(step)
	if err == nil {
		err = t.world.Has(ctx, w.Commit)
	}
	return workspace.NotRestorable(step, err)
}

// restorePlan is how a jump restores the files.
type restorePlan struct {
	source worldstate.Snapshot // the world it was made for
	base   worldstate.ID       // what differs from it is the user's
	plan   worldstate.Plan
}

// planRestore makes the present world durable and plans how a jump goes on from it.
// No file is moved. If the world is still the one that an earlier plan was made for,
// it returns that.
func (t *place) planRestore(ctx context.Context, j *state.Pending, earlier *restorePlan) (*restorePlan, error) {
	from, err := t.present()
	if err != nil {
		return nil, err
	}
	to, err := t.worldOf(j.To)
	if err != nil {
		return nil, err
	}
	w := new(restorePlan)
	if w.source, err = t.seeNow(ctx); err != nil {
		return nil, err
	}
	if earlier != nil && earlier.source.ID == w.source.ID {
		return earlier, nil
	}
	// What the user changed is theirs and stays: up to here by its operations, from
	// here on by the base.
	w.base = w.source.ID
	if (w.source.ParentLost != "" || workspace.Lost(w.source)) && from.Commit != "" {
		w.base = from.Commit // it could not be told what is theirs, or nothing is
	}
	o := worldstate.PlanOptions{Base: w.base, OverwriteEdits: j.Overwrite}
	if o.Edits, err = t.kept(j.To, j.Overwrite); err != nil {
		return nil, err
	}
	if w.plan, err = workspace.PlanSince(ctx, t.world, to.Commit, o, t.before); err != nil {
		return nil, fmt.Errorf("the way to the world of step %d cannot be planned: %w", to.Step, err)
	}
	w.base = cmp.Or(w.plan.Base, w.base)
	if workspace.Lost(w.source) { // for a process that finishes the jump
		w.base = w.source.ID
	}
	return w, nil
}

// kept returns the changes that a jump or a restore to a step keeps.
func (t *ledger) kept(step int, overwrite bool) ([]worldstate.Edit, error) {
	if overwrite {
		return nil, nil
	}
	return workspace.EditsAfter(&t.state, t.journal.Log(), step)
}

// before returns the snapshots on the path to the current step, the newest first.
func (t *place) before(yield func(worldstate.ID) bool) {
	t.state.PathBack(func(id int) bool {
		w, err := t.worldOf(id)
		return err != nil || w.Commit == "" || yield(w.Commit)
	})
}

// saveSource makes the present world durable on top of a parent.
func (t *place) saveSource(ctx context.Context, parent worldstate.ID, message string) (worldstate.Snapshot, error) {
	return t.world.Save(ctx, worldstate.SaveOptions{
		Message: message, Parent: parent, Ref: fmt.Sprintf("pre-jump-%d", t.state.Last),
	})
}

// finishJump restores the world of a jump whose intent is recorded, and records its
// end. Planned is the plan that the intent names; if nil, a process that died
// recorded the intent, and it is planned anew.
func (t *place) finishJump(ctx context.Context, planned *restorePlan) error {
	j := t.state.Jumping
	var kept []worldstate.Skip
	var err error
	if t.opts.AbandonRestore {
		kept = t.leaveFiles(ctx, j)
	} else if kept, err = t.moveFiles(ctx, j, planned); err != nil {
		return err
	}
	after, theirs, err := t.afterJump(ctx, j, kept)
	if err != nil && !t.opts.AbandonRestore { // then maybe nothing can be saved either
		return err
	}
	var changed []worldstate.Change
	if !t.opts.AbandonRestore {
		if changed, err = t.changedBy(ctx, j, after.Commit, kept); err != nil {
			return err
		}
	}
	discarded, err := t.opsOf(j.Discarded)
	if err != nil {
		return err
	}
	done := &op.JumpDone{
		From: j.From, To: j.To, Discarded: j.Discarded, Backward: j.Backward,
		Reverted: notice.FirstN(notice.Paths(changed), notice.MaxListed), NReverted: len(changed),
		Kept: notice.Skips(notice.FirstN(kept, notice.MaxListed)), NKept: len(kept), Conflicts: j.Conflicts, NConflicts: j.NConflicts,
		Saved: j.FromCommit, Abandoned: t.opts.AbandonRestore,
	}
	if string(after.Commit) != j.ToCommit {
		done.Base, done.Tree = string(after.Commit), after.Tree
	}
	effects, told := t.subagentsIn(discarded)
	done.Words = notice.WordsOf(slices.DeleteFunc(slices.Clone(discarded), t.state.Carried), told, notice.WordsOfLeft, t.counter.Count)
	since, err := t.stepEndedAt(j.To)
	if err != nil {
		return err
	}
	stays := workspace.SurvivedSince(t.Dir, since)
	done.Ignored, done.Git = notice.FirstN(stays.Ignored, notice.MaxListed), notice.FirstN(stays.Git, notice.MaxListed)
	done.Unseen = stays.Partial
	left := t.state.Discarded(j.To)
	done.Folded = len(left) > 0 && len(t.state.Unfolded(left)) == 0
	done.Notice = notice.Jump(t.Dir, j.JumpIntended, done, changed, discarded, effects, notice.TriedFrom(&t.state, j.To, j.From), t.state.ValidSteps())
	done.Notice += t.liveAgain(j) + notice.TodosNow(t.state.Todos, t.state.Steps.At(j.To).Todos) + notice.EndedSubagents(t.state.SubagentsOf(left))
	if len(j.Jobs) > 0 {
		done.Notice += fmt.Sprintf("\nEnded, because it was begun after step %d and ran in the background: %s.", j.To, notice.List(j.Jobs, len(j.Jobs)))
	}
	if theirs != nil { // one write: what was seen with the jump is not seen again
		return t.record(ctx, done, theirs) // in this order: done may forget the changes before it
	}
	return t.record(ctx, done)
}

// moveFiles brings the files to the target of a jump, and returns what stays
// otherwise than there.
func (t *place) moveFiles(ctx context.Context, j *state.Jumping, planned *restorePlan) ([]worldstate.Skip, error) {
	if planned != nil && planned.plan.Hash != j.Plan {
		return nil, fmt.Errorf("restore the world of step %d: the plan made is not the one intended", j.To)
	}
	for try := 1; ; try++ {
		var err error
		if planned == nil {
			if planned, err = t.planMove(ctx, j); err != nil {
				return nil, err
			}
		}
		skipped, kept := planned.source.Skipped, planned.plan.Keep
		if !planned.plan.Empty() { // else an earlier process had restored it
			var res worldstate.Result
			if res, err = t.world.Restore(ctx, planned.plan); err == nil {
				err = t.world.Settle() // the end of a jump is recorded when it is durable
			}
			kept = res.Kept
		}
		if err == nil {
			return workspace.Unreadable(kept, skipped), nil
		}
		if !errors.Is(err, worldstate.ErrStale) || try >= maxJumpRestores {
			return nil, fmt.Errorf("restore the world of step %d: %w", j.To, err)
		}
		planned = nil
	}
}

// planMove plans, for an intent that is recorded, from the world as it is now.
func (t *place) planMove(ctx context.Context, j *state.Jumping) (*restorePlan, error) {
	var o worldstate.PlanOptions // j.Overwrite covers what is in j.FromCommit
	var err error
	if o.Edits, err = t.kept(j.To, j.Overwrite); err != nil {
		return nil, err
	}
	w := new(restorePlan)
	w.source, err = t.saveSource(ctx, worldstate.ID(j.FromCommit), fmt.Sprintf("during the jump to step %d", j.To))
	if err != nil {
		return nil, fmt.Errorf("save the world during the jump to step %d: %w", j.To, err)
	}
	o.Base = workspace.BaseOf(j)
	if workspace.Lost(w.source) {
		o.Base = w.source.ID
	}
	if w.plan, err = t.world.Plan(ctx, worldstate.ID(j.ToCommit), &o); err != nil {
		return nil, fmt.Errorf("plan the jump to step %d: %w", j.To, err)
	}
	return w, nil
}

// afterJump saves the world as a jump left it, where that is not the target, and
// returns what the user has changed since the jump's intent.
func (t *place) afterJump(ctx context.Context, j *state.Jumping, kept []worldstate.Skip) (workspace.SavedWorld, *op.WorldChanged, error) {
	after := workspace.SavedWorld{Step: j.To, Commit: worldstate.ID(j.ToCommit)}
	if len(kept) == 0 {
		return after, nil, nil
	}
	s, err := t.world.Save(ctx, worldstate.SaveOptions{
		Message: fmt.Sprintf("after the jump to step %d", j.To), Parent: after.Commit, Ref: fmt.Sprintf("jumped-%d", j.Seq),
	})
	if err != nil {
		return after, nil, fmt.Errorf("save the world after the jump to step %d: %w", j.To, err)
	}
	after.Commit, after.Tree = s.ID, s.Tree
	if !t.opts.AbandonRestore && !slices.ContainsFunc(kept, worldstate.Skip.Fresh) {
		return after, nil, nil
	}
	theirs, err := t.changedMeanwhile(ctx, workspace.BaseOf(j), worldstate.ID(j.ToCommit), s)
	return after, theirs, err
}

// keptAbandoned is why a path stays that a jump would have changed.
const keptAbandoned = "the restore was abandoned"

// leaveFiles returns what of the directory is not as a jump's target has it, where
// the jump ends without touching a file. An error does not keep it from ending.
func (p *place) leaveFiles(ctx context.Context, j *state.Jumping) []worldstate.Skip {
	plan, err := p.world.Plan(ctx, worldstate.ID(j.ToCommit), &worldstate.PlanOptions{OverwriteEdits: true})
	if err != nil {
		return []worldstate.Skip{{Path: ".", Reason: keptAbandoned + "; what differs could not be found out: " + notice.OneLine(err.Error(), notice.MaxDelivered)}}
	}
	kept := plan.Keep
	for _, path := range append(plan.Write, plan.Delete...) {
		kept = append(kept, worldstate.Skip{Path: path, Reason: keptAbandoned})
	}
	return kept
}

// changedBy lists the paths that a jump changed, computed from the commits before
// and after it, so that a jump finished after a crash reports what the whole jump did
// and not only its last part. What stays, and was not brought back, is not among them.
func (p *place) changedBy(ctx context.Context, j *state.Jumping, after worldstate.ID, kept []worldstate.Skip) ([]worldstate.Change, error) {
	changes, err := p.world.Diff(ctx, worldstate.ID(j.FromCommit), after)
	if err != nil {
		return nil, fmt.Errorf("list what the jump to step %d changed: %w", j.To, err)
	}
	stays := make(map[string]bool)
	for _, k := range kept {
		stays[k.Path] = !k.Again()
	}
	return slices.DeleteFunc(changes, func(c worldstate.Change) bool { return stays[c.Path] }), nil
}

// liveAgain says which notes describe states that a forward jump returned to:
// what failed there may hold again, and what was repaired since does not.
func (t *ledger) liveAgain(j *state.Jumping) string {
	var again []int
	left := t.state.PathSet(j.From)
	for _, id := range t.state.Path(j.To) {
		if !left[id] && t.state.Steps.Folded(id) {
			again = append(again, id)
		}
	}
	if len(again) == 0 {
		return ""
	}
	var where []string
	for _, r := range t.state.Ranges(again) {
		where = append(where, r.String())
	}
	return fmt.Sprintf("\nYou are again in the states that the notes over ops %s describe: what they call falsified there holds again.", strings.Join(where, ", "))
}

// opsOf reads ranges of operations back from the stream.
func (t *ledger) opsOf(ranges []op.Range) ([]op.Op, error) {
	var out []op.Op
	for _, r := range ranges {
		ops, err := t.ops(r)
		if err != nil {
			return nil, err
		}
		out = append(out, ops...)
	}
	return out, nil
}

// Ops reads a range of operations back from the stream.
func (t *ledger) ops(r op.Range) ([]op.Op, error) {
	var out []op.Op
	for rec, err := range t.journal.Log().Since(r.First - 1) {
		if err != nil {
			return nil, fmt.Errorf("read ops %s: %w", r, err)
		}
		if rec.Seq > r.Last {
			break
		}
		o, err := taskdir.Decode(rec)
		if err != nil {
			return nil, err
		}
		if out = append(out, o); rec.Seq == r.Last {
			break // the line after it is not asked for, and may be damaged
		}
	}
	return out, nil
}

func (t *ledger) now() time.Time { return t.opts.Now() }

// stepEndedAt is when a step's checkpoint was recorded. Where that line is damaged
// it is when the one before it was: it lists rather too much than too little.
func (t *ledger) stepEndedAt(id int) (time.Time, error) {
	st := t.state.Steps.At(id)
	ops, err := t.ops(op.Range{First: st.Last, Last: st.Last})
	if errors.Is(err, opstream.ErrCorrupt) {
		ops, err = t.ops(op.Range{First: st.Last - 1, Last: st.Last - 1})
	}
	if err != nil || len(ops) == 0 {
		return time.Time{}, err
	}
	return ops[0].Time, nil
}
