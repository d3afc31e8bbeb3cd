package workspace

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/taskdir"
)

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
	return slices.DeleteFunc(append(dirs, h.User, os.Getenv("XDG_RUNTIME_DIR")), func(dir string) bool { return dir == "" })
}

// madeDir makes a directory and returns its path without links.
func madeDir(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}
