package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// WantDir returns an error if a task's directory is missing, with the remedy. Errors:
// ErrNoDirectory.
func WantDir(task, dir string) error {
	gone, err := DirGone(task, dir)
	if err == nil && gone {
		err = fmt.Errorf("%[1]w: task %[2]s works in %[3]s; if it was moved, 'anamnesis resume %[2]s --dir DIR' continues there; else put it back, or 'anamnesis world restore --task %[2]s STEP' recreates it", ErrNoDirectory, task, dir)
	}
	return err
}

// Locate makes dir the directory of a task's state, as a resume there does. If dir is empty, the
// task keeps its own, which must have been named in this home: taskdir.ErrElsewhere.
func Locate(h taskdir.Home, st *state.State, dir string) error {
	if own := st.Opened.Dir; dir == "" {
		err := h.CheckOwn(&st.Opened)
		if real, linked := filepath.EvalSymlinks(own); err == nil && linked == nil && real != own {
			err = fmt.Errorf("%[1]w: task %[2]s works in %[3]s, which leads to another directory now, %[4]s; 'anamnesis resume %[2]s --dir DIR' continues there, or in any other", ErrNoDirectory, st.Opened.Task, own, real)
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

// ErrNoDirectory: the task's directory does not exist.
var ErrNoDirectory = errors.New("no such directory")
