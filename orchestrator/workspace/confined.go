package workspace

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/taskdir"
)

// Sandbox makes the confinement of a task's commands when it is first needed, since examining the
// machine takes time. Its methods may be called from any goroutine.
type Sandbox struct {
	ledger   *journal.Ledger
	dir      string
	override guard.Confinement // instead of the task's, in this process
	writes   guard.Writes      // what the commands change

	mu   sync.Mutex // guards the others
	made bool
	box  *guard.Sandbox
}

// Get returns the confinement, nil if there is none. The first call examines this machine.
func (s *Sandbox) Get(ctx context.Context) (*guard.Sandbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made {
		return s.box, nil
	}
	box, err := s.open(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("sandbox of task %s: %w", s.ledger.ID, err)
	}
	if dirs := box.Exposes(); len(dirs) > 0 {
		err := fmt.Errorf(
			"sandbox of task %s: this system has neither user namespaces nor Landlock, so commands could "+
				"read the program's state, with the streams and secrets of all tasks, in %s",
			s.ledger.ID, strings.Join(dirs, ", "))
		return nil, remedy.With(err, remedy.SandboxOff, "")
	}
	s.box, s.made = box, true
	return box, nil
}

func (s *Sandbox) open(ctx context.Context, untried bool) (*guard.Sandbox, error) {
	h, id := s.ledger.Home, s.ledger.ID
	var readable []string
	if bundles, err := filepath.EvalSymlinks(filepath.Join(h.Task(id), taskdir.BundlesName)); err == nil {
		readable = []string{bundles} // after a take-over, the agent may fetch from them
	}
	return NewSandbox(ctx, h, guard.SandboxOptions{
		Confine: s.Confinement(), World: s.dir, Temp: h.Temp(id), Quarantine: h.Quarantine(id), Untried: untried,
		Writable: s.ledger.State().Opened.Writable, Readable: readable, Writes: &s.writes,
	})
}

// examine restores files by move, and quarantines what git would run by them; note names that.
// Without a sandbox no command could have prepared that.
func (s *Sandbox) examine(ctx context.Context, move func() error) (note string, err error) {
	s.mu.Lock()
	box, made := s.box, s.made
	s.mu.Unlock()
	if !made {
		box, err = s.open(ctx, true)
	}
	if err != nil {
		return "", move()
	}
	return box.Examine(move)
}

// observes reports whether the confinement reports what commands write.
func (s *Sandbox) observes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.box.Observes()
}

// Confinement returns how the task's commands are to be confined.
func (s *Sandbox) Confinement() guard.Confinement {
	return cmp.Or(s.override, guard.Confinement(s.ledger.State().Opened.Sandbox))
}

// Writable returns the directories beside the world that the task's commands may write.
func (s *Sandbox) Writable() []string {
	return append(slices.Clone(s.ledger.State().Opened.Writable), s.ledger.Home.Cache())
}

// protectedNames are what commands cannot write in the world: the user's files for this
// program. gitNames are what git runs for the user, without a quarantine.
const (
	protectedNames = ".anamnesis"
	gitNames       = ".git/hooks .git/config"
)

// NewSandbox makes the sandbox of commands in a world. The options name the world, what may be
// written beside it, and the place of temporary files.
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

// places makes the directories of a sandbox, and replaces their names by paths without links.
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
		o.Runs = h.Runs()
		if o.Quarantine, err = madeDir(o.Quarantine); err != nil {
			return err
		}
	}
	o.Hidden = append(o.Hidden, hidden(h)...)
	for _, dir := range userDirs(h) {
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != "/" {
			o.Homes = append(o.Homes, real)
		}
	}
	return nil
}

// hidden lists the directories of the program's own state, without links.
func hidden(h taskdir.Home) (dirs []string) {
	for _, root := range h.Roots() {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			dirs = append(dirs, real)
		}
	}
	return dirs
}

// CheckWritable returns why a directory, given without links, cannot be one that a task's commands
// may write beside the world.
func CheckWritable(h taskdir.Home, dir string) error {
	return guard.CheckWritable(dir, append(h.Roots(), hidden(h)...)) // some may be made later
}

// homesOfUsers are where systems keep users' directories.
const homesOfUsers = "/home /root /run/user /var/home"

// userDirs are users' directories, which programs of projects cannot see.
func userDirs(h taskdir.Home) []string {
	dirs := strings.Fields(homesOfUsers)
	if u, err := user.Current(); err == nil {
		dirs = append(dirs, u.HomeDir)
	}
	dirs = append(dirs, h.User, os.Getenv("XDG_RUNTIME_DIR"))
	return slices.DeleteFunc(dirs, func(dir string) bool { return dir == "" })
}

// madeDir makes a directory and returns its path without links.
func madeDir(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}
