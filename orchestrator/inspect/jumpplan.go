package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// JumpPlan is what a jump would do now.
type JumpPlan struct {
	From      int        `json:"from"`
	To        int        `json:"to"`
	Backward  bool       `json:"backward"`
	Discarded []op.Range `json:"discarded"` // operations that would be left
	Tokens    int        `json:"tokens"`    // of these
	// EAS is the span of the task's model. It is compared with Raw, the tokens of all
	// discarded operations that would be in the context without a pass. Passes are those that
	// the jump would make, one a span; if none, Raw stays.
	EAS     int                 `json:"eas"`
	Raw     int                 `json:"raw_tokens"`
	Passes  []state.PlannedPass `json:"passes"`
	Running bool                `json:"running"` // it would wait for the present step's end
	// UnderWay is a step that would end first and be left, too; changes since the last step's
	// end are its own. 0: none.
	UnderWay int `json:"under_way,omitempty"`
	// Damaged describes a damaged line of the stream that the name of a snapshot replaced;
	// empty: none.
	Damaged string `json:"damaged,omitempty"`
	// DirGone: the world's directory is gone; the jump would recreate it and write every file
	// of the target.
	DirGone bool            `json:"dir_gone,omitempty"`
	World   worldstate.Plan `json:"world"`
	Git     []op.GitMove    `json:"git,omitempty"` // moves of git repositories, if they were asked for
}

// PlanJump returns what a user's jump would do. It uses To, Compact and Overwrite of the request.
// Errors: ErrNoTask, ErrNoStep, ErrNoDirectory, ErrNotJumped, ErrPending while an earlier jump
// is not finished, those of worldstate's Plan, and a worldstate.ErrCorrupt if the store lacks
// anything of the target.
func PlanJump(ctx context.Context, h taskdir.Home, task, dir string, j op.JumpRequested) (JumpPlan, error) {
	to := j.To
	st, r, err := taskdir.OpenState(h, task)
	if err != nil {
		return JumpPlan{}, err
	}
	defer r.Close()
	if err := st.CanJump(to, j.Git); err != nil {
		return JumpPlan{}, err
	}
	if st.Opened.Origin.Imported() {
		return JumpPlan{}, taskdir.CheckParent(st)
	}
	if err := workspace.Locate(h, st, dir); err != nil {
		return JumpPlan{}, err
	}
	if st.Jump.Intended != nil {
		return JumpPlan{}, fmt.Errorf("a jump is %w: that to step %d was interrupted; resume the task, or jump: "+
			"either finishes it first", taskdir.ErrPending, st.Jump.Intended.To)
	}
	discarded := st.Discarded(to)
	ranges := st.Steps.Ranges(discarded)
	p := JumpPlan{
		EAS: st.Model.EAS, Raw: st.StepTokens(st.Steps.Raw(to)), Passes: st.PlannedPasses(to, discarded, j.Compact),
		From: st.Current, To: to, Backward: st.Steps.OnPath(to, st.Current),
		Discarded: append([]op.Range{}, ranges...), Tokens: st.RangeTokens(ranges),
	}
	// A recorder, and a session that waits, let go of their task.
	p.Running = st.Opened.Origin == nil && st.Standing(taskdir.Live(h, task) != 0) == "running"
	if st.Reply != nil || p.Running && st.Turn.Open {
		p.UnderWay = st.Steps.Next()
	}
	if p.DirGone, err = workspace.DirGone(task, st.Opened.Dir); err != nil {
		return JumpPlan{}, err
	}
	if _, err := os.Stat(filepath.Join(h.StoreOf(&st.Opened), "HEAD")); err != nil { // opening it would create one
		return JumpPlan{}, workspace.NotRestorable(to, fmt.Errorf("%w: %w", worldstate.ErrCorrupt, err))
	}
	w, err := worldstate.Open(st.Opened.Dir, h.StoreOf(&st.Opened), &worldstate.Options{
		Task: task, Moved: st.Moved, Home: h.User, Exclude: h.Excluded(), StoreOnly: p.DirGone,
		FileLimitBytes: h.FileLimitBytes, Secrets: h.Secrets,
	})
	if err != nil {
		return JumpPlan{}, err
	}
	defer w.Close()
	ends, overcome, err := workspace.Commits(r, st, w, st.Current, to)
	if err != nil {
		return JumpPlan{}, err
	}
	p.Damaged = overcome
	// The jump also checks this: a plan reads no file of the target.
	if err := w.Has(ctx, ends[1]); err != nil {
		return JumpPlan{}, workspace.NotRestorable(to, err)
	}
	if err := workspace.ReadableFor(st, r, j, 0); err != nil {
		return JumpPlan{}, err
	}
	if p.DirGone {
		p.World.Write, p.World.Delete, p.World.Keep = []string{}, []string{}, []worldstate.Skip{}
		return p, nil
	}
	p.World, err = planFiles(ctx, r, st, w, j, ends, p.UnderWay > 0 && st.World.Dirty)
	return p, err
}

// planFiles plans what a jump would do to the files between two commits. With stepRuns,
// changes since the first belong to the running step.
func planFiles(ctx context.Context, stream taskdir.Stream, st *state.State, w *worldstate.World, j op.JumpRequested,
	ends []worldstate.ID, stepRuns bool) (worldstate.Plan, error) {
	base := worldstate.ID(cmp.Or(st.World.Now.Commit, string(ends[0])))
	// Without a snapshot of its own, no change in a step counts as the user's.
	o := worldstate.PlanOptions{Base: base, OverwriteEdits: j.Overwrite || base == "" || stepRuns}
	var err error
	if !j.Overwrite {
		if o.Edits, err = workspace.EditsIn(st, stream, j.To); err != nil {
			return worldstate.Plan{}, err
		}
	}
	plan, err := workspace.PlanSince(ctx, w, ends[1], o, func(yield func(worldstate.ID) bool) {
		st.Steps.Back(st.Current)(func(id int) bool {
			c, _, err := workspace.Commits(stream, st, w, id)
			return err != nil || c[0] == "" || yield(c[0])
		})
	})
	if errors.Is(err, worldstate.ErrUnfinished) {
		return worldstate.Plan{}, fmt.Errorf("plan the jump to step %d: %w: resume the task, or jump: either does it "+
			"first", j.To, err)
	}
	if err != nil {
		return worldstate.Plan{}, fmt.Errorf("plan the jump to step %d: %w", j.To, workspace.AsDamage(err))
	}
	plan.Keep = workspace.Unreadable(plan.Keep, plan.Skipped)
	return plan, nil
}

// PlanRestore plans what RestoreWorld would do to the files of a task that is not open. world
// is the task's, and the commit is what name resolves to there.
func PlanRestore(ctx context.Context, h taskdir.Home, task string, world *worldstate.World, commit worldstate.ID,
	name string, o worldstate.PlanOptions) (worldstate.Plan, error) {
	st, r, err := taskdir.OpenState(h, task)
	if err != nil {
		return worldstate.Plan{}, err
	}
	defer r.Close()
	here, _, err := workspace.Commits(r, st, world, st.Current)
	if err != nil {
		return worldstate.Plan{}, err
	}
	o.Base = worldstate.ID(cmp.Or(st.World.Now.Commit, string(here[0])))
	if !o.OverwriteEdits {
		commits, _, _ := workspace.Commits(r, st, world) // an unreadable step is not the one meant
		named := strings.TrimPrefix(name, task+"@")
		step := workspace.StepWith(len(commits), named, func(id int) bool { return commits[id] == commit })
		if o.Edits, err = workspace.EditsIn(st, r, step); err != nil {
			return worldstate.Plan{}, err
		}
	}
	return world.Plan(ctx, commit, &o)
}
