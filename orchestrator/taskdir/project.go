package taskdir

import (
	"path/filepath"
	"slices"

	"anamnesis/worldstate"
)

// Project is what a user works on in a directory: its repository with all clones of the same remote, or, outside of
// a repository, the directory with those in it.
type Project struct {
	top string
	ids []string // of worldstate.Identity
}

// ProjectAt returns the project of a directory. Errors: worldstate.ErrNoDirectory.
func ProjectAt(dir string) (Project, error) {
	dir, err := WorldDir(dir)
	if err != nil {
		return Project{}, err
	}
	top, ids, _ := worldstate.Identity(dir)
	return Project{top, ids}, nil
}

// Has reports whether a task belongs to the project. repo is the name of the task's repository (op.TaskOpened.Repo),
// dirs are the directories that it concerns. A name without a host identifies nothing.
func (p Project) Has(repo string, dirs ...string) bool {
	return slices.Contains(p.ids, "remote:"+repo) || slices.ContainsFunc(dirs, func(dir string) bool {
		rel, err := filepath.Rel(p.top, dir)
		return err == nil && filepath.IsLocal(rel)
	})
}
