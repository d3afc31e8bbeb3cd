package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"anamnesis/opstream/op"
	"anamnesis/worldstate"
)

// A JumpPlan is what a jump would do, were it made now.
type JumpPlan struct {
	From      int        `json:"from"`
	To        int        `json:"to"`
	Backward  bool       `json:"backward"`
	Discarded []op.Range `json:"discarded"` // operations that would be left
	Tokens    int        `json:"tokens"`    // of these
	Running   bool       `json:"running"`   // it would wait for the present step's end
	// Damaged says which line of the stream is damaged that a ref in the store stood
	// in for; empty: none.
	Damaged string `json:"damaged,omitempty"`
	// DirGone: the world's directory is gone; the jump would make it again and
	// write every file of the target.
	DirGone bool            `json:"dir_gone,omitempty"`
	World   worldstate.Plan `json:"world"`
}

// PlanJump says what a person's jump to a step would do and does none of it.
// Errors: ErrNoTask, ErrNoStep, ErrNotJumped, ErrPending while a jump that was
// begun is not finished, those of worldstate's Plan, and where the store lacks
// anything of the target what the jump itself would say, a worldstate.ErrCorrupt.
func PlanJump(ctx context.Context, h Home, task string, to int, overwrite bool) (JumpPlan, error) {
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
	ranges := st.Ranges(st.Discarded(to))
	p := JumpPlan{
		From: st.Current, To: to, Backward: st.OnPath(to, st.Current),
		Discarded: append([]op.Range{}, ranges...), Tokens: st.rangeTokens(ranges), Running: Live(h, task) != 0,
	}
	_, err = os.Stat(st.Opened.Dir)
	p.DirGone = errors.Is(err, fs.ErrNotExist)
	if _, err := os.Stat(filepath.Join(st.Opened.Store, "HEAD")); err != nil { // opening it would make one
		return JumpPlan{}, notRestorable(to, fmt.Errorf("%w: %w", worldstate.ErrCorrupt, err))
	}
	w, err := worldstate.Open(st.Opened.Dir, st.Opened.Store, &worldstate.Options{Task: task, Home: h.User, Exclude: h.Roots(), StoreOnly: p.DirGone})
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
	if err := leavable(h, task, ranges); err != nil {
		return JumpPlan{}, err
	}
	if p.DirGone {
		p.World.Write, p.World.Delete, p.World.Keep = []string{}, []string{}, []worldstate.Skip{}
		return p, nil
	}
	base := worldstate.ID(cmp.Or(st.EditsSince, string(ends[0])))
	// Without a snapshot of its own nothing in a step counts as a person's edit.
	o := &worldstate.PlanOptions{Base: base, OverwriteEdits: overwrite || base == ""}
	if p.World, err = w.Plan(ctx, ends[1], o); err != nil {
		return JumpPlan{}, fmt.Errorf("plan the jump to step %d: %w", to, damage(err))
	}
	return p, nil
}
