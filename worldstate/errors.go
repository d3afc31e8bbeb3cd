package worldstate

import (
	"errors"
	"fmt"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/refs"
)

// The sentinels callers branch on, with errors.Is.
var (
	// ErrRefused: the directory or the restore is refused on principle: "/",
	// the home directory, a store that holds its own world, another world's
	// snapshot. Nothing was touched.
	ErrRefused = errors.New("refused")
	// ErrNoDirectory: the world's directory is not there, or is none.
	ErrNoDirectory = errors.New("no such directory")
	// ErrStale: the world or its snapshots no longer match the plan. Nothing
	// was touched; plan again.
	ErrStale = errors.New("the plan is stale")
	// ErrLocked: another process holds the store; see LockedError.
	ErrLocked = fsys.ErrLocked
	// ErrUnknown: no snapshot, or more than one, has this name.
	ErrUnknown = refs.ErrUnknown
	// ErrBadName: a task or a step has a name that no ref can have.
	ErrBadName = refs.ErrBadName
	// ErrNoPath: the snapshot, or the world, holds nothing at a path that was
	// asked for.
	ErrNoPath = errors.New("no such path")
	// ErrUnfinished: a restore was interrupted and Recover has not run yet.
	ErrUnfinished = errors.New("an interrupted restore must be recovered first")
	// ErrCorrupt: the store holds something this package did not write or
	// that has rotted; MissingObjectError is one such.
	ErrCorrupt = gitfmt.ErrCorrupt
	// ErrFull: the store has reached Options.SizeLimitBytes; see LimitError.
	ErrFull = errors.New("store is full")
)

// A LockedError says which process holds the store.
type LockedError = fsys.LockedError

// DefaultLockWait is how long an operation waits for another process.
const DefaultLockWait = fsys.DefaultLockWait

// A MissingObjectError names an object that is gone or rotten and the path
// that needs it. It is found before the first byte of the world moves.
type MissingObjectError struct {
	Object string // the object's hash, hex
	Path   string // the path in the snapshot that needs it, or what it is
	Err    error  // why it cannot be read
}

func (e *MissingObjectError) Error() string {
	if fsys.Exhausted(e.Err) {
		return fmt.Sprintf("object %s (%s) cannot be read: %v", e.Object, e.Path, e.Err)
	}
	return fmt.Sprintf("object %s (%s) is missing or damaged: %v", e.Object, e.Path, e.Err)
}

func (e *MissingObjectError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrCorrupt) true, unless too many files were open to
// look.
func (e *MissingObjectError) Is(target error) bool {
	return target == gitfmt.ErrCorrupt && !fsys.Exhausted(e.Err)
}

// A LimitError says that a save would have grown the store past its cap. The
// store is as it was.
type LimitError struct {
	Store      string
	LimitBytes int64
	NeedBytes  int64 // what the store would have held
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("store %s would grow to %d bytes, over its limit of %d; raise the limit or remove old tasks", e.Store, e.NeedBytes, e.LimitBytes)
}

// Is makes errors.Is(err, ErrFull) true.
func (e *LimitError) Is(target error) bool { return target == ErrFull }

// A RestoreError is a restore that failed on the way, disk full for instance.
// When RolledBack is true the world is at its source again; otherwise the
// journal stands and Recover must be called once the cause is gone.
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
