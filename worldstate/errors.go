package worldstate

import (
	"errors"
	"fmt"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/plan"
	"anamnesis/worldstate/internal/refs"
	"anamnesis/worldstate/internal/restore"
)

// The sentinel errors, for errors.Is.
var (
	// ErrRefused: the directory or the restore is never permitted: "/", the home directory, a
	// store that contains its own world, another world's snapshot. Nothing was changed.
	ErrRefused = gitfmt.ErrRefused
	// ErrNoDirectory: there is no directory at the world's path.
	ErrNoDirectory = gitfmt.ErrNoDirectory
	// ErrReplaced: another directory is at the world's path than at its first operation. Nothing was
	// read or changed. Accept takes the present one.
	ErrReplaced = errors.New("another directory is at this path now: it was moved, removed or linked meanwhile")
	// ErrStale: the world or its snapshots no longer match the plan. Nothing was changed; plan
	// again.
	ErrStale = errors.New("the plan is stale")
	// ErrLocked: another process holds the store; see LockedError.
	ErrLocked = fsys.ErrLocked
	// ErrUnknown: no snapshot has this name, or more than one has it.
	ErrUnknown = refs.ErrUnknown
	// ErrBadName: the name of a task or a step is not valid in a ref.
	ErrBadName = refs.ErrBadName
	// ErrNoPath: neither the snapshot nor the world has a requested path.
	ErrNoPath = plan.ErrNoPath
	// ErrUnfinished: a restore was interrupted and Recover has not run yet.
	ErrUnfinished = errors.New("an interrupted restore must be recovered first")
	// ErrFull: the store has reached Options.SizeLimitBytes; see LimitError.
	ErrFull = objects.ErrFull
	// ErrCorrupt: the store holds damaged data, or data that this package did not write;
	// MissingObjectError is such an error.
	ErrCorrupt = gitfmt.ErrCorrupt
)

// The errors with details, for errors.As.
type (
	// LockedError names the process that holds the store: Store, Holder ("process 123" or "another
	// process") and Waited, a duration in words.
	LockedError = fsys.LockedError
	// MissingObjectError names an object that is missing or damaged: Object is its hash, Path what needs
	// it, and Err why it cannot be read.
	MissingObjectError = gitfmt.MissingObjectError
	// LimitError reports that a save would have grown the store past its limit: Store, LimitBytes, and
	// NeedBytes, the size that the store would have had. The store is unchanged.
	LimitError = objects.LimitError
	// RestoreError is a restore that failed partway with Err at Path. If RolledBack is true, the world is
	// at its source again; otherwise Recover must be called once the cause is removed, or the command
	// Abandon gives the restore up.
	RestoreError = restore.RestoreError
)

// DefaultLockWait is how long an operation waits for another process.
const DefaultLockWait = fsys.DefaultLockWait

// A ref may name a snapshot that the store no longer holds. Our packs have .keep files, so that
// git removes none of them; a damaged disk or a user can. An operation on a lost snapshot is
// refused with one line. A save without its parent has none, and a plan without its base counts
// every path that differs from the target as edited.

// lostLine describes a lost snapshot in one line.
func lostLine(id ID, err error) string {
	return fmt.Sprintf("snapshot %s is missing or damaged: %s; only a backup can bring it back",
		gitfmt.Short(id), whyMissing(id, err))
}

// isLost reports whether an error means that a snapshot is lost. A whole id that is unknown
// counts, too: its snapshot existed once.
func isLost(id ID, err error) bool {
	_, whole := gitfmt.ParseHash(string(id))
	return errors.Is(err, gitfmt.ErrCorrupt) || whole && errors.Is(err, ErrUnknown)
}

// whyMissing returns the cause of a lost snapshot, without its id.
func whyMissing(id ID, err error) string {
	var m *MissingObjectError
	switch {
	case errors.As(err, &m) && m.Object == string(id):
		return m.Err.Error()
	case m != nil:
		return m.Error()
	case errors.Is(err, ErrUnknown):
		return objects.ErrNoObject.Error()
	}
	return err.Error()
}

// UnfinishedError is a restore that was interrupted and can be neither finished nor rolled back
// now. [World.Abandon] gives it up.
type UnfinishedError struct {
	Dir, Store string
	Task       string // of the world's options; empty: none
	Err        error
}

func (e *UnfinishedError) Error() string { return e.Err.Error() }
func (e *UnfinishedError) Unwrap() error { return e.Err }
