package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

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
	// DirGone: the world's directory is gone; the jump would make it again and
	// write every file of the target.
	DirGone bool            `json:"dir_gone,omitempty"`
	World   worldstate.Plan `json:"world"`
}

// PlanJump says what a person's jump to a step would do and does none of it.
// Errors: ErrNoTask, ErrNoStep, ErrNotJumped, ErrPending while a jump that was
// begun is not finished, and those of worldstate's Plan; a snapshot that the
// store does not know is worldstate.ErrCorrupt, since the stream names it.
func PlanJump(ctx context.Context, h Home, task string, to int, overwrite bool) (JumpPlan, error) {
	st, err := ReadState(h, task)
	if err != nil {
		return JumpPlan{}, err
	}
	if err := st.CanJump(to); err != nil {
		return JumpPlan{}, err
	}
	if st.Jumping != nil {
		return JumpPlan{}, fmt.Errorf("a jump is %w: that to step %d was interrupted; resume the task first", ErrPending, st.Jumping.To)
	}
	ranges := st.Ranges(st.Discarded(to))
	p := JumpPlan{
		From: st.Current, To: to, Backward: st.OnPath(to, st.Current),
		Discarded: append([]op.Range{}, ranges...), Tokens: st.rangeTokens(ranges), Running: Live(h, task) != 0,
	}
	if _, err := os.Stat(st.Opened.Dir); errors.Is(err, fs.ErrNotExist) {
		p.DirGone = true
		p.World.Write, p.World.Delete, p.World.Keep = []string{}, []string{}, []worldstate.Skip{}
		return p, nil
	}
	w, err := worldstate.Open(st.Opened.Dir, st.Opened.Store, &worldstate.Options{Task: task, Home: h.User, Exclude: h.Roots()})
	if err != nil {
		return JumpPlan{}, err
	}
	defer w.Close()
	base := worldstate.ID(st.Steps.At(st.Current).Commit)
	// Without a snapshot of its own nothing in a step counts as a person's edit.
	o := &worldstate.PlanOptions{Base: base, OverwriteEdits: overwrite || base == ""}
	if p.World, err = w.Plan(ctx, worldstate.ID(st.Steps.At(to).Commit), o); err != nil {
		return JumpPlan{}, fmt.Errorf("plan the jump to step %d: %w", to, damage(err))
	}
	return p, nil
}
