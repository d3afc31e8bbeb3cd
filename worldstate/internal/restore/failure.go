package restore

import "fmt"

// A RestoreError is a restore that failed on the way, disk full for instance.
// When RolledBack is true the world is at its source again; otherwise the
// journal is still there and Recover must be called once the cause is gone.
type RestoreError struct {
	Path       string
	RolledBack bool
	// Abandon is the command that gives the restore up, where it was not rolled
	// back; see World.Abandon.
	Abandon string
	Err     error
}

func (e *RestoreError) Error() string {
	state := "the world was put back as it was"
	switch {
	case e.RolledBack:
	case e.Abandon != "":
		state = "the world could not be put back either; remove the cause and run the command again to recover, or give the restore up: " + e.Abandon
	default: // within another error, which says it
		return fmt.Sprintf("restore %s: %v", shortPath(e.Path), e.Err)
	}
	return fmt.Sprintf("restore %s: %v (%s)", shortPath(e.Path), e.Err, state)
}

// maxShownPath is how much of a path an error shows, in bytes.
const maxShownPath = 240

// shortPath is a path for an error's one line.
func shortPath(path string) string {
	if len(path) <= maxShownPath {
		return path
	}
	return fmt.Sprintf("%s…%s (%d bytes)", path[:maxShownPath/2], path[len(path)-maxShownPath/2:], len(path))
}

func (e *RestoreError) Unwrap() error { return e.Err }
