package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// WantDir returns an error if a task's directory is missing, with the remedy. Errors:
// ErrNoDirectory.
func WantDir(task, dir string) error {
	gone, err := DirGone(task, dir)
	if err == nil && gone {
		err = remedy.With(fmt.Errorf("%w: task %s works in %s", ErrNoDirectory, task, dir), remedy.RelocateOrMake, task)
	}
	return err
}

// Locate makes dir the directory of a task's state, as a resume there does. If dir is empty, the
// task keeps its own, which must have been named in this home: taskdir.ErrElsewhere.
func Locate(h taskdir.Home, st *state.State, dir string) error {
	if own := st.Opened.Dir; dir == "" {
		err := h.CheckOwn(&st.Opened)
		if real, linked := filepath.EvalSymlinks(own); err == nil && linked == nil && real != own {
			err = fmt.Errorf("%w: task %s works in %s, which leads to another directory now, %s", ErrNoDirectory,
				st.Opened.Task, own, real)
			err = remedy.With(err, remedy.Relocate, st.Opened.Task)
		}
		return err
	}
	real, err := taskdir.WorldDir(dir)
	if err == nil {
		err = taskdir.OutsideHome(h, real)
	}
	if err != nil {
		return err
	}
	if real != st.Opened.Dir {
		st.Moved = append(slices.Clip(st.Moved), st.Opened.Dir)
	}
	st.Opened.Dir, st.Opened.Store = real, h.StoreOf(&st.Opened)
	return nil
}

// DirGone reports whether a task's directory is missing and can be recreated. ErrNoDirectory
// says what is at its place.
func DirGone(task, dir string) (bool, error) {
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return false, nil
	}
	what := "a file is in the directory's place; move it away"
	switch _, absent := os.Lstat(dir); {
	case err == nil:
	case errors.Is(absent, os.ErrNotExist):
		return true, nil
	case errors.Is(err, os.ErrNotExist):
		what = "a dangling link is in the directory's place; remove the link, or restore its target"
	default:
		return false, fmt.Errorf("%w: task %s works in %s: %w", ErrNoDirectory, task, dir, err)
	}
	return false, fmt.Errorf("%w: task %s works in %s, where %s", ErrNoDirectory, task, dir, what)
}

// RecreateDir makes a world's directory if it is missing.
func RecreateDir(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return nil // opening checks it
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("the world's directory is missing and cannot be recreated: %w", err)
	}
	return nil
}

// Reset reports whether the directory is as it was before the task, which has changed it: a fresh checkout in place.
func (p *Place) Reset(ctx context.Context) bool {
	was, err := p.present()
	first, failed := p.WorldOf(0)
	if err != nil || failed != nil || first.Commit == "" || was.Tree == first.Tree {
		return false
	}
	back, err := p.World.Plan(ctx, first.Commit, &worldstate.PlanOptions{OverwriteEdits: true})
	return err == nil && back.Empty()
}

// ErrNoDirectory: the task's directory does not exist.
var ErrNoDirectory = errors.New("no such directory")
