package workspace

import (
	"errors"
	"fmt"
	"os"
)

// WantDir returns an error if a task's directory is missing, with the remedy. Errors:
// ErrNoDirectory.
func WantDir(task, dir string) error {
	gone, err := DirGone(task, dir)
	if err == nil && gone {
		err = fmt.Errorf("%w: task %s works in %s; put the directory back, or 'anamnesis jump %s STEP' recreates it", ErrNoDirectory, task, dir, task)
	}
	return err
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
