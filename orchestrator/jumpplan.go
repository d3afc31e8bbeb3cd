package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/worldstate"
)

// A JumpPlan is what a jump would do, were it made now.
type JumpPlan struct {
	From      int        `json:"from"`
	To        int        `json:"to"`
	Backward  bool       `json:"backward"`
	Discarded []op.Range `json:"discarded"` // operations that would be left
	Tokens    int        `json:"tokens"`    // of these
	// EAS is the span of the task's model, which Raw is held against: the tokens of all
	// discarded operations that would stand in the context as they are, without a
	// pass. Passes are those that would be made, one a span; none: Raw is let stand.
	EAS     int                 `json:"eas"`
	Raw     int                 `json:"raw_tokens"`
	Passes  []state.PlannedPass `json:"passes"`
	Running bool                `json:"running"` // it would wait for the present step's end
	// UnderWay is a step that would end first, and would be left, too; what changed
	// since the last one ended is its doing. 0: none.
	UnderWay int `json:"under_way,omitempty"`
	// Damaged says which line of the stream is damaged that a ref in the store stood
	// in for; empty: none.
	Damaged string `json:"damaged,omitempty"`
	// DirGone: the world's directory is gone; the jump would make it again and
	// write every file of the target.
	DirGone bool            `json:"dir_gone,omitempty"`
	World   worldstate.Plan `json:"world"`
}

// PlanJump says what a person's jump would do and does none of it. Of the request
// it heeds To, Fold and Overwrite.
// Errors: ErrNoTask, ErrNoStep, ErrNoDirectory, ErrNotJumped, ErrPending while a jump that was
// begun is not finished, those of worldstate's Plan, and where the store lacks
// anything of the target what the jump itself would say, a worldstate.ErrCorrupt.
func PlanJump(ctx context.Context, h Home, task string, j op.JumpRequested) (JumpPlan, error) {
	to := j.To
	st, err := ReadState(h, task)
	if err != nil {
		return JumpPlan{}, err
	}
	if err := st.CanJump(to); err != nil {
		return JumpPlan{}, err
	}
	if st.Jumping != nil {
		return JumpPlan{}, fmt.Errorf("a jump is %w: that to step %d was interrupted; resume the task, or jump: either finishes it first", ErrPending, st.Jumping.To)
	}
	discarded := st.Discarded(to)
	ranges := st.Ranges(discarded)
	p := JumpPlan{
		EAS: st.EAS, Raw: st.StepTokens(st.RawSteps(to)), Passes: st.PlannedPasses(to, discarded, j.Fold),
		From: st.Current, To: to, Backward: st.OnPath(to, st.Current),
		Discarded: append([]op.Range{}, ranges...), Tokens: st.RangeTokens(ranges), Running: Live(h, task) != 0,
	}
	if st.Reply != nil || p.Running && st.Turn.Open {
		p.UnderWay = st.NextStep()
	}
	if p.DirGone, err = dirGone(task, st.Opened.Dir); err != nil {
		return JumpPlan{}, err
	}
	if _, err := os.Stat(filepath.Join(st.Opened.Store, "HEAD")); err != nil { // opening it would make one
		return JumpPlan{}, notRestorable(to, fmt.Errorf("%w: %w", worldstate.ErrCorrupt, err))
	}
	w, err := worldstate.Open(st.Opened.Dir, st.Opened.Store, &worldstate.Options{Task: task, Home: h.User, Exclude: h.Roots(), StoreOnly: p.DirGone, FileLimitBytes: h.FileLimitBytes})
	if err != nil {
		return JumpPlan{}, err
	}
	defer w.Close()
	ends, overcome, err := Commits(h, task, st, w, st.Current, to)
	if err != nil {
		return JumpPlan{}, err
	}
	p.Damaged = overcome
	// As the jump will: a plan reads no file of the target.
	if err := w.Has(ctx, ends[1]); err != nil {
		return JumpPlan{}, notRestorable(to, err)
	}
	if err := leavable(h, st, j); err != nil {
		return JumpPlan{}, err
	}
	if p.DirGone {
		p.World.Write, p.World.Delete, p.World.Keep = []string{}, []string{}, []worldstate.Skip{}
		return p, nil
	}
	base := worldstate.ID(cmp.Or(st.Now.Commit, string(ends[0])))
	// Without a snapshot of its own nothing in a step counts as the user's.
	o := worldstate.PlanOptions{Base: base, OverwriteEdits: j.Overwrite || base == "" || p.UnderWay > 0 && st.Dirty}
	if !j.Overwrite {
		if o.Edits, err = editsIn(h, st, to); err != nil {
			return JumpPlan{}, err
		}
	}
	p.World, err = planSince(ctx, w, ends[1], o, func(yield func(worldstate.ID) bool) {
		st.PathBack(func(id int) bool {
			c, _, err := Commits(h, task, st, w, id)
			return err != nil || c[0] == "" || yield(c[0])
		})
	})
	if errors.Is(err, worldstate.ErrUnfinished) {
		return JumpPlan{}, fmt.Errorf("plan the jump to step %d: %w: resume the task, or jump: either does it first", to, err)
	}
	if err != nil {
		return JumpPlan{}, fmt.Errorf("plan the jump to step %d: %w", to, damage(err))
	}
	p.World.Keep = unreadable(p.World.Keep, p.World.Skipped)
	return p, nil
}

// editsIn is editsAfter for a task that is not open, with what changed since its
// last snapshot: a jump or a restore records that first.
func editsIn(h Home, s *state.State, step int) ([]worldstate.Edit, error) {
	r, err := openStream(h, s.Opened.Task, &opstream.Options{Checkpoint: state.FoldVersion})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	edits, err := editsAfter(s, r, step)
	return append(edits, worldstate.Edit{Unknown: s.AuthorUnknown()}), err
}

// planSince plans. If the store has lost the base, it plans from the newest whole one
// of those before it; if there is none, every path that differs from the target stays.
func planSince(ctx context.Context, w *worldstate.World, target worldstate.ID, o worldstate.PlanOptions, before iter.Seq[worldstate.ID]) (worldstate.Plan, error) {
	plan, err := w.Plan(ctx, target, &o)
	lost := plan.BaseLost
	if err != nil || lost == "" {
		return plan, err
	}
	for o.Base = range before {
		if plan, err = w.Plan(ctx, target, &o); err != nil || plan.BaseLost == "" {
			break
		}
	}
	plan.BaseLost = lost
	return plan, err
}
