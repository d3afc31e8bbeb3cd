package beside

import (
	"context"
	"fmt"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// Checkpoint saves the world of a recorded session as a step of its own.
func Checkpoint(ctx context.Context, svc *session.Service, task, note string) (step int, err error) {
	p, end, err := atRest(ctx, svc, task, "")
	if err != nil {
		return 0, err
	}
	defer end()
	if err := p.open(ctx, task, &event{}); err != nil {
		return 0, err
	}
	step, err = runtime.Outside{Task: p.task}.Checkpoint(ctx, note)
	return step, session.JoinClose(err, p.close())
}

// Jump makes a jump. In a session that another agent works in it is refused with ErrCallOpen
// while a session of the directory has a call under way.
func Jump(ctx context.Context, svc *session.Service, task, dir string, j op.JumpRequested, c session.Client) (
	session.Jumped, error) {
	end, err := noCall(ctx, svc, task, dir)
	if err != nil {
		return session.Jumped{}, err
	}
	defer end()
	return svc.Jump(ctx, task, dir, j, c)
}

// Restore restores files of a task alone. In a session that another agent works in it is
// refused as a jump is.
func Restore(ctx context.Context, svc *session.Service, task, name string, o worldstate.RestoreOptions) (
	worldstate.Result, []string, error) {
	end, err := noCall(ctx, svc, task, "")
	if err != nil {
		return worldstate.Result{}, nil, err
	}
	defer end()
	return svc.RestoreWorld(ctx, task, name, o)
}

// noCall is atRest, and fails with ErrCallOpen while a session of the directory has an open call. It does nothing to a
// task that no other agent works in.
func noCall(ctx context.Context, svc *session.Service, task, dir string) (end func(), err error) {
	st, err := svc.State(task)
	if err != nil {
		return nil, err
	}
	if !st.Opened.Origin.Recorded() {
		return func() {}, nil
	}
	p, end, err := atRest(ctx, svc, task, dir)
	if err != nil {
		return nil, err
	}
	calls, err := callsUnderWay(svc.Home, p.dir)
	for other, c := range calls {
		err = fmt.Errorf("%w: %s of %s; go back when it has returned; a call whose agent was killed counts for an hour",
			runtime.ErrCallOpen, c.Call, other)
	}
	if err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// atRest records the waiting events of a session's directory and locks the directory until
// end is called.
func atRest(ctx context.Context, svc *session.Service, task, dir string) (p *place, end func(), err error) {
	st, err := svc.State(task)
	if err != nil {
		return nil, nil, err
	}
	if err := workspace.Locate(svc.Home, st, dir); err != nil {
		return nil, nil, err
	}
	p = &place{svc: svc, dir: st.Opened.Dir, unsure: true}
	if err := p.record(ctx, "", nil); err != nil {
		return nil, nil, err
	}
	end, err = lockWorld(ctx, svc.Home, p.dir)
	return p, end, err
}
