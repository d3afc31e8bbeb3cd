package worldstate

import (
	"context"
	"fmt"
	"path/filepath"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gc"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
)

// GCOptions say what a collection keeps. The zero value keeps every snapshot
// that any ref names.
type GCOptions = gc.Options

// A GCReport is what a collection did, or would do.
type GCReport = gc.Report

// GC puts what is needed of the packs that saves made into one pack, as differences
// where that is shorter, and removes the rest of them. Needed is what refs, unfinished
// restores and o name. A store that a user's git works in (worktrees, reflogs, an index, a
// detached HEAD) is refused: ErrRefused. Packs that are not ours are left alone, loose
// objects are not looked at, and a user's ref to what is in no pack ends the collection.
// Others may
// save and restore meanwhile: the store's lock is held while it looks what is
// there and while it switches over, which takes as long as reading what was saved
// in between. That is in a pack of its own. One collection runs at a time.
// Killed anywhere, every snapshot that was to be kept is there, and the next
// collection continues; what it wrote, the next holder of the lock removes. An
// object that is needed and missing or damaged ends it before anything is
// removed: *MissingObjectError.
func GC(ctx context.Context, store string, o *GCOptions) (GCReport, error) {
	var opts GCOptions
	if o != nil {
		opts = *o
	}
	if opts.LockWait <= 0 {
		opts.LockWait = DefaultLockWait
	}
	if opts.Hook == nil {
		opts.Hook = func(string) {}
	}
	if there, err := fsys.Exists(filepath.Join(store, fsys.StateDir)); err != nil {
		return gc.Report{}, fmt.Errorf("gc %s: %w", store, err)
	} else if !there {
		return gc.Report{}, fmt.Errorf("gc %s: %w: it is no store; name the bare repository that holds snapshots", store, ErrRefused)
	}
	return gc.Run(ctx, store, opts, func() ([]gitfmt.Hash, error) { return restore.JournalRoots(store) })
}
