package runtime

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
)

// protectedNames are what commands do not write in the world: the user's files for
// this program, and gitNames what git runs for the user where no quarantine
// watches over that.
const (
	protectedNames = ".anamnesis"
	gitNames       = ".git/hooks .git/config"
)

// sandbox is what holds the commands of a task in, once it was found out.
type sandbox struct {
	boxMu sync.Mutex // guards the others
	tried bool
	box   *guard.Sandbox
}

// Sandbox is what the task's commands are held in; nil: nothing. The first call
// finds out what this machine has for it. It may be called from any goroutine.
func (t *Task) Sandbox(ctx context.Context) (*guard.Sandbox, error) {
	t.boxMu.Lock()
	defer t.boxMu.Unlock()
	if t.tried {
		return t.box, nil
	}
	box, err := NewSandbox(ctx, t.home, guard.SandboxOptions{
		Confine: t.confinement(), World: t.Dir, Writable: t.state.Opened.Writable, Temp: t.home.Temp(t.ID), Quarantine: t.home.Quarantine(t.ID),
	})
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

// NewSandbox makes the sandbox of commands in a world, of which the options name
// the world, what may be written beside it and the place of temporary files.
func NewSandbox(ctx context.Context, h taskdir.Home, o guard.SandboxOptions) (*guard.Sandbox, error) {
	names := protectedNames
	if o.Quarantine == "" {
		names += " " + gitNames
	}
	for name := range strings.FieldsSeq(names) {
		o.Protected = append(o.Protected, filepath.Join(o.World, name))
	}
	if o.Confine != guard.ConfineOff {
		if err := places(h, &o); err != nil {
			return nil, err
		}
	}
	return guard.NewSandbox(ctx, o)
}

// confinement is what the task's commands are to be held in.
func (t *ledger) confinement() guard.Confinement {
	if t.opts.Sandbox != "" {
		return t.opts.Sandbox
	}
	return guard.Confinement(t.state.Opened.Sandbox)
}

// places makes the directories of a sandbox, and names all of them without
// links.
func places(h taskdir.Home, o *guard.SandboxOptions) error {
	var err error
	if o.Cache, err = madeDir(h.Cache()); err != nil {
		return err
	}
	if o.Projects, err = madeDir(h.Projects()); err != nil {
		return err
	}
	if o.Temp, err = madeDir(o.Temp); err != nil {
		return err
	}
	if o.Quarantine != "" {
		if o.Quarantine, err = madeDir(o.Quarantine); err != nil {
			return err
		}
	}
	for _, root := range h.Roots() {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			o.Hidden = append(o.Hidden, real)
		}
	}
	for _, dir := range userDirs(h) {
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != "/" {
			o.Homes = append(o.Homes, real)
		}
	}
	return nil
}

// homesOfUsers are where systems keep the directories of users.
const homesOfUsers = "/home /root /run/user /var/home"

// userDirs are the directories of users that programs of projects see nothing of.
func userDirs(h taskdir.Home) []string {
	dirs := strings.Fields(homesOfUsers)
	if u, err := user.Current(); err == nil {
		dirs = append(dirs, u.HomeDir)
	}
	return slices.DeleteFunc(append(dirs, h.User, os.Getenv("XDG_RUNTIME_DIR")), func(dir string) bool { return dir == "" })
}

// madeDir makes a directory and returns its path without links.
func madeDir(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// beside are the directories beside the world that the task's commands may write.
func (t *ledger) beside() []string {
	return append(slices.Clone(t.state.Opened.Writable), t.home.Cache())
}

// sandboxFor is the sandbox of a call that runs a command or a program.
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
