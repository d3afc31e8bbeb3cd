package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/git"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// Jumped is the result of a jump.
type Jumped struct {
	// Scheduled: the task is running and jumps at the end of the step under way; Done is nil.
	Scheduled bool
	Done      *op.JumpDone
	Warnings  []string
}

// PlanJump returns what a jump would do. It uses To, Compact, Overwrite and Git of j. dir is as in Jump.
func (s *Service) PlanJump(ctx context.Context, task, dir string, j op.JumpRequested) (inspect.JumpPlan, error) {
	p, err := inspect.PlanJump(ctx, s.Home, task, dir, j)
	if err != nil || !j.Git || p.DirGone {
		return p, err
	}
	st, r, err := taskdir.OpenState(s.Home, task)
	if err != nil {
		return p, err
	}
	defer r.Close()
	if p.Git, err = git.Plan(ctx, cmp.Or(dir, st.Opened.Dir), st, r, j.To); err != nil {
		err = fmt.Errorf("%w: %w", state.ErrNotJumped, err)
	}
	return p, err
}

// PlanRestore returns what RestoreWorld would do.
func (s *Service) PlanRestore(ctx context.Context, task, name string, o worldstate.PlanOptions) (
	worldstate.Plan, error) {
	limits := worldstate.Options{FileLimitBytes: s.Home.FileLimitBytes}
	w, err := Place{Task: task}.Open(func() (taskdir.Home, error) { return s.Home, nil }, Live, limits)
	if err != nil {
		return worldstate.Plan{}, err
	}
	defer w.Close()
	id, err := workspace.Resolve(ctx, s.Home, w, task, name)
	if err != nil {
		return worldstate.Plan{}, err
	}
	return inspect.PlanRestore(ctx, s.Home, task, w, id, name, o)
}

// Jump moves a task to the end of a step. A task that another process or session runs jumps at
// the end of the step under way; any other jumps now. dir is where the task continues; empty: its own directory. The
// result has the warnings in any case.
func (s *Service) Jump(ctx context.Context, task, dir string, j op.JumpRequested, c Client) (Jumped, error) {
	st, err := taskdir.ReadState(s.Home, task)
	if err != nil {
		return Jumped{}, err
	}
	if err = taskdir.ErrNotLive; dir == "" { // a running task keeps its directory
		err = s.deliver(ctx, task, taskdir.Command{Verb: "jump", JumpRequested: j})
	}
	if err == nil || !errors.Is(err, taskdir.ErrNotLive) {
		return Jumped{Scheduled: err == nil}, err
	}
	if err := st.CanJump(j.To, j.Git); err != nil {
		return Jumped{}, err
	}
	if err := workspace.Locate(s.Home, st, dir); err != nil {
		return Jumped{}, err
	}
	o := &opening{Service: s, client: c}
	o.TaskDir = dir
	done, err := o.jumpIdle(ctx, st, j)
	return Jumped{Done: done, Warnings: o.warnings}, err
}

// jumpIdle jumps in a task that is not running. A pass asks the task's model if it can be
// reached; otherwise the extractor writes.
func (o *opening) jumpIdle(ctx context.Context, st *state.State, j op.JumpRequested) (*op.JumpDone, error) {
	t, err := o.idleAsking(ctx, st)
	if err != nil {
		return nil, err
	}
	done, err := t.JumpNow(ctx, j, o.here())
	if damaged := t.Place.Damaged(); damaged != "" {
		o.warn("warning: %s; the step's snapshot in the store was used instead", oneLine(damaged))
	}
	if err != nil && t.Ledger.State().Jump.Intended != nil {
		err = remedy.With(fmt.Errorf("%w; the jump to step %d has begun", err, j.To), remedy.FinishJump, t.Ledger.ID)
	}
	return done, JoinClose(err, t.Close())
}

// Compact replaces all steps but the newest, of a task that is not running, by a block and
// cards. It returns the tokens of the context before and after.
func (s *Service) Compact(ctx context.Context, task string, c Client) (before, after int, err error) {
	st, err := taskdir.ReadState(s.Home, task)
	if err != nil {
		return 0, 0, err
	}
	if len(st.Compactable()) == 0 {
		return 0, 0, memory.ErrNothingToCompact
	}
	o := &opening{Service: s, client: c}
	t, err := o.idleAsking(ctx, st)
	if err != nil {
		return 0, 0, err
	}
	if err = t.Resume(ctx, "", o.here()); err == nil {
		before, after, err = t.Memory.Compact(ctx)
	}
	err = JoinClose(err, t.Close())
	for _, w := range o.warnings {
		c.note(w)
	}
	return before, after, err
}

// idleAsking opens a task that is not running, with its model if that can be reached.
func (o *opening) idleAsking(ctx context.Context, st *state.State) (*runtime.Task, error) {
	if st.Opened.Origin != nil { // its model is another agent's
		return o.idle(ctx, st, runtime.Options{Cards: runtime.Cards{Reader: o.o.Reader}})
	}
	info := Info{Task: st.Opened.Task, Dir: st.Opened.Dir, Model: st.Model.Name}
	opts := runtime.Options{Callbacks: runtime.Callbacks{Op: o.client.Op, Passing: o.client.Passing}}
	m, modelErr := o.ChooseModel(ctx, st.Model.Name, st.Model.BaseURL, "")
	if modelErr == nil {
		m.OnRetry(o.client.Retry)
		opts.Model, info.Banner = m.Model, m.Banner
	} else {
		opts.Callbacks.Op = func(b op.Op) {
			if o.client.Op != nil {
				o.client.Op(b)
			}
			if p, ok := b.Body.(*op.PassDone); ok && p.Writer != "model" {
				o.warn("warning: the block was written without the model: %v", modelErr)
			}
		}
	}
	if o.client.Started != nil {
		o.client.Started(info)
	}
	return o.idle(ctx, st, opts)
}

// idle opens a task that is not running, to change its world. It uses the model, the callbacks
// and AbandonRestore of opts.
func (o *opening) idle(ctx context.Context, st *state.State, opts runtime.Options) (*runtime.Task, error) {
	o.warnUnset(st)
	opts.Recreate, opts.Program, opts.Dir = true, o.Program(), o.TaskDir
	opts.Secrets = o.TaskSecrets(st.Opened.Dir, st.Redact)
	opts.Store = o.o.Store
	t, err := runtime.OpenTask(ctx, o.Home, st.Opened.Task, opts)
	if err != nil {
		return nil, err
	}
	o.refused(t)
	return t, nil
}

// RestoreWorld restores the files of a task that is not running, and records it there.
func (s *Service) RestoreWorld(ctx context.Context, task, name string, r worldstate.RestoreOptions) (
	res worldstate.Result, warnings []string, err error) {
	warnings, err = s.inIdle(ctx, task, runtime.Options{}, func(t *runtime.Task) (err error) {
		res, err = t.RestoreWorld(ctx, name, r, s.here())
		return err
	})
	return res, warnings, err
}

// AbandonRestore gives up an unfinished restore of a task, and reports whether there was one.
func (s *Service) AbandonRestore(ctx context.Context, task string) (found bool, warnings []string, err error) {
	warnings, err = s.inIdle(ctx, task, runtime.Options{AbandonRestore: true}, func(t *runtime.Task) (err error) {
		found, err = t.AbandonRestore(ctx, s.here())
		return err
	})
	return found, warnings, err
}

func (s *Service) inIdle(ctx context.Context, task string, opts runtime.Options, do func(*runtime.Task) error) (
	[]string, error) {
	st, err := taskdir.ReadState(s.Home, task)
	if err != nil {
		return nil, err
	}
	o := &opening{Service: s}
	t, err := o.idle(ctx, st, opts)
	if err != nil {
		return o.warnings, err
	}
	return o.warnings, JoinClose(do(t), t.Close())
}
