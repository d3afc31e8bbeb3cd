package worldstate

import (
	"errors"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/plan"
	"anamnesis/worldstate/internal/refs"
	"anamnesis/worldstate/internal/restore"
)

// The sentinels callers branch on, with errors.Is.
var (
	// ErrRefused: the directory or the restore is refused on principle: "/",
	// the home directory, a store that holds its own world, another world's
	// snapshot. Nothing was touched.
	ErrRefused = gitfmt.ErrRefused
	// ErrNoDirectory: the world's directory is not there, or is none.
	ErrNoDirectory = gitfmt.ErrNoDirectory
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
	ErrNoPath = plan.ErrNoPath
	// ErrUnfinished: a restore was interrupted and Recover has not run yet.
	ErrUnfinished = errors.New("an interrupted restore must be recovered first")
	// ErrFull: the store has reached Options.SizeLimitBytes; see LimitError.
	ErrFull = objects.ErrFull
	// ErrCorrupt: the store holds something this package did not write or
	// that has rotted; MissingObjectError is one such.
	ErrCorrupt = gitfmt.ErrCorrupt
)

// A LockedError says which process holds the store.
type LockedError = fsys.LockedError

// DefaultLockWait is how long an operation waits for another process.
const DefaultLockWait = fsys.DefaultLockWait

// A MissingObjectError names an object that is gone or rotten and the path
// that needs it. It is found before the first byte of the world moves.
type MissingObjectError = gitfmt.MissingObjectError

// A LimitError says that a save would have grown the store past its limit.
type LimitError = objects.LimitError

// A RestoreError is a restore that failed on the way, disk full for instance.
type RestoreError = restore.RestoreError
