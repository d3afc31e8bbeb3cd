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

// The sentinel errors, for errors.Is.
var (
	// ErrRefused: the directory or the restore is never permitted: "/", the home directory, a
	// store that contains its own world, another world's snapshot. Nothing was changed.
	ErrRefused = gitfmt.ErrRefused
	// ErrNoDirectory: there is no directory at the world's path.
	ErrNoDirectory = gitfmt.ErrNoDirectory
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

// A LockedError names the process that holds the store.
type LockedError = fsys.LockedError

// DefaultLockWait is how long an operation waits for another process.
const DefaultLockWait = fsys.DefaultLockWait

// A MissingObjectError names an object that is missing or damaged and a path that needs it. It
// is returned before a restore changes the first file.
type MissingObjectError = gitfmt.MissingObjectError

// A LimitError reports that a save would have grown the store past its limit.
type LimitError = objects.LimitError

// A RestoreError is a restore that failed partway, for instance because the disk was full.
type RestoreError = restore.RestoreError
