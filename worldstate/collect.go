package worldstate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gc"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
)

// The types of GC and Verify. 'go doc anamnesis/worldstate/internal/gc' lists their fields.
type (
	// GCOptions select what GC keeps. The zero value keeps every snapshot that a ref names.
	GCOptions = gc.Options
	// GCReport is the result of GC or of its dry run: the sizes before and after, what was kept and
	// which tasks' snapshots were removed.
	GCReport = gc.Report
	// Report is what Verify found. OK means that every object that a ref needs or a pack holds has an
	// intact copy; otherwise Problems names what has none.
	Report = gc.Health
	// Problem is one missing or damaged Object and one Snapshot that needs it at Path, with the Error.
	Problem = gc.Problem
)

// GC writes one pack of all needed objects in the packs that saves made, with deltas where
// these are shorter, and removes those packs. Needed is what refs, unfinished restores and o
// name. Other packs and loose objects are not changed. ErrRefused: a user's git works in the
// store (worktrees, reflogs, an index, a detached HEAD). A user's ref to an object in no pack
// is an error.
//
// Other processes may save and restore meanwhile: the store's lock is held while GC reads the
// refs and while it switches over, which takes as long as reading what was saved in between.
// That goes into a pack of its own. One collection runs at a time. After a kill at any moment,
// every snapshot to be kept exists; the next holder of the lock removes what was written, and
// the next collection starts again. If a needed object is missing or damaged, GC ends before it
// removes anything: *MissingObjectError.
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
		return gc.Report{}, fmt.Errorf("gc %s: %w: not a store; name the bare repository that holds snapshots",
			store, ErrRefused)
	}
	return gc.Run(ctx, store, opts, func() ([]gitfmt.Hash, error) { return restore.JournalRoots(store) })
}

// Verify reads and hashes every object of the store's packs, and everything that our refs
// reach, of all tasks and worlds. The Report lists damage; the error means that the store could
// not be read at all. It takes no lock; a collection that runs meanwhile removes only packs that
// are open by then. After damage a save writes the damaged objects again that are still in the
// world.
func (w *World) Verify(ctx context.Context) (Report, error) {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return Report{}, err
	}
	defer end()
	r, err := gc.Verify(ctx, w.objects, w.refs, w.opts.Hook)
	if err != nil {
		return Report{}, err
	}
	r.Unfinished = errors.Is(w.checkNoJournal(), ErrUnfinished)
	if r.OK && len(r.DamagedCopies) == 0 {
		return r, nil
	}
	// The stat cache relies on the store: without it, the next save reads all files.
	if err := w.track.Forget(); err != nil {
		return r, fmt.Errorf("verify: %w", err)
	}
	return r, nil
}
