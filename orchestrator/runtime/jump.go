package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/git"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/workspace"
)

// JumpNow performs a user's jump in a task that is not running. It first closes what a dead
// process left open: a jump that had begun is finished; one that was requested is this jump if
// it has the same target, and is dropped otherwise; calls that never began do not run. A world
// that the store has lost is ErrNotJumped and worldstate.ErrCorrupt.
func (t *Task) JumpNow(ctx context.Context, j op.JumpRequested, resumed *op.TaskResumed) (*op.JumpDone, error) {
	if err := t.Ledger.State().CanJump(j.To, j.Git); err != nil {
		return nil, err
	}
	// Once begun, a jump is completed: an interruption only shortens the pass.
	keep, was := context.WithoutCancel(ctx), t.Ledger.State().Jump.Intended
	if err := t.continueTask(ctx, keep, resumed, "Not run: the user jumped before it began."); err != nil {
		return nil, err
	}
	// The jump that the dead process began is the one asked for if it has the same target and did no less to edits and
	// git. Its end is the answer, unless the user also wants the block that it did not make.
	if was != nil && was.To == j.To && t.Ledger.State().Current == j.To &&
		(was.Overwrite || !j.Overwrite) && (len(was.Git) > 0 || !j.Git) {
		if done, err := t.jumpEnd(was.Seq); err != nil || done.Compacted || !j.Compact {
			return done, err
		}
	}
	begun := t.Ledger.State().Last
	j.By = op.ByUser
	bodies := []op.Body{&j}
	if p := t.Ledger.State().Jump.Pending; p != nil { // one write: exactly one of the two jumps is recorded
		bodies = append(dropped(p, "the user jumped instead"), &j)
	}
	if err := t.Ledger.Record(keep, bodies...); err != nil {
		return nil, err
	}
	for t.Ledger.State().Jump.Pending != nil {
		if _, err := t.perform(ctx, keep, state.Next(t.Ledger.State(), t.limits())); err != nil {
			return nil, err
		}
	}
	done, err := t.jumpEnd(begun)
	if errors.Is(err, state.ErrNotJumped) {
		if gone := t.jumpable(keep, j); gone != nil { // callers branch on the type, and the record has only the text
			return nil, fmt.Errorf("%w: %w", state.ErrNotJumped, gone)
		}
	}
	return done, err
}

// continueTask records that this process continues the task, and closes what a dead process left
// open: its jump is finished if it had begun, its restore is reported, and calls that never
// began are closed with the text notRun.
func (t *Task) continueTask(ctx, keep context.Context, resumed *op.TaskResumed, notRun string) error {
	t.nameDir(resumed)
	if err := t.Ledger.Record(keep, resumed); err != nil {
		return err
	}
	if err := t.left.CloseSubagents(keep); err != nil {
		return err
	}
	for st := t.Ledger.State(); st.Jump.Intended != nil || st.World.Restoring != nil || st.Reply != nil; {
		act := state.Next(st, t.limits())
		if act.Kind == state.ActRunCalls {
			for _, c := range act.Calls {
				closed := &op.ToolReturned{Call: c.ID, Name: c.Name, Text: notRun, IsError: true}
				if err := t.Ledger.Journal.Post(keep, closed); err != nil {
					return err
				}
			}
			if err := t.Ledger.ApplyQueued(); err != nil {
				return err
			}
			continue
		}
		if _, err := t.perform(ctx, keep, act); err != nil {
			return err
		}
	}
	return t.Place.Adopt(keep, resumed.Dir != "")
}

// jumpEnd reads how the jump that was requested after op seq ended.
func (t *Task) jumpEnd(seq uint64) (*op.JumpDone, error) {
	ops, err := t.Ledger.Ops(op.Range{First: seq + 1, Last: t.Ledger.State().Last})
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
			return nil, fmt.Errorf("%w: jump requested but never completed", state.ErrStream)
		}
	}
	return nil, fmt.Errorf("%w: jump ended without a record", state.ErrStream)
}

// performJump performs the pending jump: pass, plan, intent, restore, notice. Every file and
// commit an operation names is durable before it is named, so that a crash leaves the jump
// either not begun or to be finished. Background commands are ended only when the jump can be
// planned, since nothing restarts them. If ctx ends, the extractor replaces the model in the
// pass; the jump is completed.
func (t *Task) performJump(ctx, keep context.Context) error {
	st := t.Ledger.State()
	j := st.Jump.Pending
	from, to := st.Current, j.To
	if err := t.jumpable(keep, j.JumpRequested); err != nil {
		return t.dropJump(keep, err.Error())
	}
	if err := workspace.RecreateDir(t.Place.Dir); err != nil { // a command may have removed it
		return t.dropJump(keep, err.Error())
	}
	w, err := t.Place.PlanRestore(keep, j, nil)
	if err != nil {
		return t.dropJump(keep, err.Error())
	}
	var moves []op.GitMove
	if j.Git {
		if moves, err = git.Plan(keep, t.Place.Dir, st, t.Ledger.Journal.Log(), to); err != nil {
			return t.dropJump(keep, err.Error())
		}
	}
	discarded := st.Discarded(to)
	ended, err := t.features.jobs.EndOf(keep, discarded)
	if err != nil {
		return err
	}
	ranges := st.Steps.Ranges(discarded)
	if j.Mail != nil {
		err = t.features.mail.Pass(keep, j)
	} else {
		err = t.Memory.Passes(ctx, keep, j, discarded)
	}
	if errors.Is(err, opstream.ErrCorrupt) {
		return t.dropJump(keep, err.Error()) // it would fail again at each resume
	}
	if err != nil {
		return err
	}
	// Save what changed during the pass.
	if w, err = t.Place.PlanRestore(keep, j, w); err != nil {
		why := err.Error()
		if len(ended) > 0 {
			why += "; ended for it all the same: " + notice.List(ended, len(ended))
		}
		return t.dropJump(keep, why)
	}
	card, err := t.Memory.Learned(keep, j.Learned, ranges)
	if err != nil {
		return err
	}
	path, err := t.Ledger.Ops(ranges...)
	if err != nil {
		return err
	}
	if err := t.Ledger.Record(keep, &op.JumpIntended{
		From: from, To: to, Reason: j.Reason, Learned: j.Learned, Tried: notice.Tried(t.Place.Dir, path),
		Card: card, By: j.By, Discarded: ranges, Tokens: st.RangeTokens(ranges),
		FromCommit: string(w.Source.ID), ToCommit: string(w.Plan.Target), Base: string(w.Base), Overwrite: j.Overwrite,
		Plan: w.Plan.Hash, Jobs: ended, Git: moves, Backward: st.Steps.OnPath(to, from),
		Conflicts: notice.FirstN(w.Plan.Conflicts, notice.MaxListed), NConflicts: len(w.Plan.Conflicts),
	}); err != nil {
		return err
	}
	// A jump is a barrier. An interruption ends only the wait for the bucket: a jump with an intent is completed.
	if err := t.Ledger.Journal.Safe(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return t.finishJump(keep, w)
}

// jumpable returns why a jump cannot be performed, as far as that is known in advance: the
// world of the step is lost, or the records it needs are damaged.
func (t *Task) jumpable(ctx context.Context, j op.JumpRequested) error {
	if err := t.Place.Restorable(ctx, j.To); err != nil {
		return err
	}
	return workspace.ReadableFor(t.Ledger.State(), t.Ledger.Journal.Log(), j, t.Memory.TaintRead())
}

// finishJump restores the world of a jump whose intent is recorded, and records its end.
// planned is the plan that the intent names. If nil, another process recorded the intent, and
// a new plan is made.
func (t *Task) finishJump(ctx context.Context, planned *workspace.RestorePlan) error {
	st := t.Ledger.State()
	j := st.Jump.Intended
	m, err := t.Place.MoveForJump(ctx, j, planned)
	if err != nil {
		return err
	}
	discarded, err := t.Ledger.Ops(j.Discarded...)
	if err != nil {
		return err
	}
	done := &op.JumpDone{
		From: j.From, To: j.To, Discarded: j.Discarded, Backward: j.Backward,
		Reverted: notice.FirstN(notice.Paths(m.Changed), notice.MaxListed), NReverted: len(m.Changed),
		Deleted: notice.Deleted(notice.FirstN(m.Changed, notice.MaxListed)),
		Kept:    notice.Skips(notice.FirstN(m.Kept, notice.MaxListed)), NKept: len(m.Kept),
		Conflicts: j.Conflicts, NConflicts: j.NConflicts, Saved: j.FromCommit, Abandoned: t.Place.Abandon,
		LostAttributes: notice.Skips(notice.FirstN(m.Lost, notice.MaxListed)),
	}
	// Files that stayed make the world differ from the target: later changes count from the snapshot after the jump.
	if string(m.After.Commit) != j.ToCommit {
		done.Base, done.Tree = string(m.After.Commit), m.After.Tree
	}
	effects, told := subagentsIn(t.Place, discarded)
	done.Words = notice.WordsOf(slices.DeleteFunc(slices.Clone(discarded), st.Carried), told,
		notice.WordsOfLeft, t.Ledger.Counter.Count)
	since, err := t.Ledger.StepEndedAt(j.To)
	if err != nil {
		return err
	}
	stays := workspace.SurvivedSince(t.Place.Dir, since)
	done.Ignored = notice.FirstN(stays.Ignored, notice.MaxListed)
	if done.GitMoved = len(j.Git) > 0 && !t.Place.Abandon; done.GitMoved {
		// The name is the same for each process that finishes this jump, so that a second one completes the moves of a
		// first that was killed.
		for _, move := range j.Git {
			done.Git = append(done.Git, git.Apply(ctx, t.Place.Dir, move, fmt.Sprintf("%s-%d", t.Ledger.ID, j.Seq)))
		}
	} else {
		done.Git = t.Place.GitDifferences(ctx, j.To)
	}
	done.Unseen = stays.Partial
	done.IgnoredGone = notice.FirstN(workspace.IgnoredGone(t.Place.Dir, discarded), notice.MaxListed)
	left := st.Discarded(j.To)
	done.Compacted = len(left) > 0 && len(st.Steps.Uncompacted(left)) == 0
	done.Notice = notice.Jump(t.Place.Dir, j.JumpIntended, done, m.Changed, discarded, effects,
		notice.TriedFrom(st, j.To, j.From), st.Steps.Valid())
	done.Notice += t.liveAgain(j) + notice.TodosNow(st.Todos, st.Steps.At(j.To).Todos) +
		notice.EndedSubagents(st.Subagents.BegunIn(left))
	if len(j.Jobs) > 0 {
		done.Notice += fmt.Sprintf("\nEnded, because it was begun after step %d and ran in the background: %s.", j.To,
			notice.List(j.Jobs, len(j.Jobs)))
	}
	named := func(o op.Op) bool { b, ok := o.Body.(*op.TaskResumed); return ok && b.Dir != "" }
	if len(st.Moved) > 0 && slices.ContainsFunc(discarded, named) {
		done.Notice += "\n" + notice.Moved(st.Moved[0], t.Place.Dir) // the system prompt names the first
	}
	if m.Theirs != nil { // one write: what was seen with the jump is not seen again
		return t.Ledger.Record(ctx, done, m.Theirs) // in this order: done may forget the changes before it
	}
	return t.Ledger.Record(ctx, done)
}

// liveAgain returns the notes about states that a forward jump returned to: earlier failures
// may hold again, and later repairs do not.
func (t *Task) liveAgain(j *state.Jumping) string {
	var again []int
	left := t.Ledger.State().Steps.PathSet(j.From)
	for _, id := range t.Ledger.State().Steps.Path(j.To) {
		if !left[id] && t.Ledger.State().Steps.At(id).Compacted {
			again = append(again, id)
		}
	}
	if len(again) == 0 {
		return ""
	}
	var where []string
	for _, r := range t.Ledger.State().Steps.Ranges(again) {
		where = append(where, r.String())
	}
	return fmt.Sprintf("\nYou are again in the states that the notes over ops %s describe: what they call falsified "+
		"there holds again.", strings.Join(where, ", "))
}
