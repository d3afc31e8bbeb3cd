package restore

import "fmt"

// A RestoreError is a restore that failed partway, for instance because the disk was full. If
// RolledBack is true, the world is at its source again. Otherwise the journal remains, and
// Recover must be called once the cause is removed.
type RestoreError struct {
	Path       string
	RolledBack bool
	Stuck      bool // the roll-back failed, too; see World.Abandon
	Err        error
}

func (e *RestoreError) Error() string {
	state := "the world was rolled back"
	switch {
	case e.RolledBack:
	case e.Stuck:
		state = "the roll-back failed, too"
	default: // the enclosing error describes the state
		return fmt.Sprintf("restore %s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("restore %s: %v (%s)", e.Path, e.Err, state)
}

func (e *RestoreError) Unwrap() error { return e.Err }
