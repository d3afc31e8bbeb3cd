package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/workspace"
)

// sandbox is the confinement of a task's commands, once it was determined.
type sandbox struct {
	boxMu sync.Mutex // guards the others
	tried bool
	box   *guard.Sandbox
}

// Sandbox returns the confinement of the task's commands, nil if there is none. The first call
// examines this machine. It may be called from any goroutine.
func (t *Task) Sandbox(ctx context.Context) (*guard.Sandbox, error) {
	t.boxMu.Lock()
	defer t.boxMu.Unlock()
	if t.tried {
		return t.box, nil
	}
	box, err := t.makeSandbox(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("sandbox of task %s: %w", t.ID, err)
	}
	if dirs := box.Exposes(); len(dirs) > 0 {
		return nil, fmt.Errorf("sandbox of task %s: this system has neither user namespaces nor Landlock, so commands could read the program's state, with the streams and secrets of all tasks, in %s; to run them all the same, give --sandbox off",
			t.ID, strings.Join(dirs, ", "))
	}
	t.box, t.tried = box, true
	return box, nil
}

func (t *Task) makeSandbox(ctx context.Context, untried bool) (*guard.Sandbox, error) {
	return workspace.NewSandbox(ctx, t.Home, guard.SandboxOptions{
		Confine: t.confinement(), World: t.Dir, Writable: t.State().Opened.Writable, Temp: t.Home.Temp(t.ID), Quarantine: t.Home.Quarantine(t.ID),
		Writes: &t.Writes, Untried: untried,
	})
}

// examine runs what restores files, and quarantines what git would run by them. Without a sandbox
// no command could have prepared that.
func (t *Task) examine(ctx context.Context, move func() error) (note string, err error) {
	t.boxMu.Lock()
	box, tried := t.box, t.tried
	t.boxMu.Unlock()
	if !tried {
		box, err = t.makeSandbox(ctx, true)
	}
	if err != nil {
		return "", move()
	}
	return box.Examine(move)
}

// confinement returns how the task's commands are to be confined.
func (t *Task) confinement() guard.Confinement {
	if t.opts.Guards.Sandbox != "" {
		return t.opts.Guards.Sandbox
	}
	return guard.Confinement(t.State().Opened.Sandbox)
}

// beside returns the directories beside the world that the task's commands may write.
func (t *Task) beside() []string {
	return append(slices.Clone(t.State().Opened.Writable), t.Home.Cache())
}

// sandboxFor returns the sandbox of a call that runs a command or a program.
func (t *Task) sandboxFor(ctx context.Context, spec tool.Spec) (*guard.Sandbox, error) {
	if spec.Command == "" && !spec.Runs {
		return nil, nil
	}
	box, err := t.Sandbox(ctx)
	if ctx.Err() != nil {
		return nil, nil // the call is not run
	}
	return box, err
}
