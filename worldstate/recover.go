package worldstate

import (
	"context"
	"fmt"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/refs"
	"anamnesis/worldstate/internal/restore"
)

// A Recovery is the result of Recover or Abandon.
type Recovery struct {
	Source ID `json:"source"`
	Target ID `json:"target"`
	// Finished: the world is at the target. Otherwise it is at the source; or Dropped: its
	// files were removed since, and nothing was changed; or Abandoned.
	Finished  bool   `json:"finished"`
	Dropped   bool   `json:"dropped,omitempty"`
	Abandoned bool   `json:"abandoned,omitempty"`
	Reason    string `json:"reason,omitempty"` // why it was rolled back
	Kept      []Skip `json:"kept"`             // changed by another program since, and kept
}

// checkNoJournal returns ErrUnfinished for an interrupted restore.
func (w *World) checkNoJournal() error {
	there, err := w.journal.Exists()
	switch {
	case err != nil:
		return fmt.Errorf("world %s: read journal: %w", w.dir, err)
	case there:
		return fmt.Errorf("world %s: %w", w.dir, ErrUnfinished)
	}
	return nil
}

// Recover completes an interrupted restore, or rolls it back if it cannot be completed. It
// drops a restore whose files were all removed since. It returns nil if there was none. Callers
// must call it when Save or Plan returns ErrUnfinished.
func (w *World) Recover(ctx context.Context) (*Recovery, error) {
	end, err := w.begin(ctx, changing)
	if err != nil {
		return nil, err
	}
	defer end()
	j, err := w.journal.Read()
	if err != nil {
		return nil, w.unfinished(err)
	}
	if j == nil {
		return nil, nil
	}
	root, err := w.openRoot()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	r := &Recovery{Source: ID(j.Source.String()), Target: ID(j.Target.String()), Kept: []Skip{}}
	// If the source cannot be read, the executor decides path by path.
	if source, err := w.listing(r.Source); err == nil && restore.FilesRemoved(root.Fd, source, j.Actions) {
		r.Dropped, w.unsettled = true, nil
		return r, w.journal.Remove()
	}
	x := restore.Resume(w.effects(), root.Fd, j)
	x.SweepTemps(j.Actions)
	if err := x.Run(j.Actions); err != nil {
		var berr error
		if x, berr = restore.Undo(w.effects(), root.Fd, j); berr != nil {
			return nil, fmt.Errorf("recover %s: %w", w.dir, w.unfinished(fmt.Errorf("%w; roll back: %w", err, berr)))
		}
		r.Reason, j.Head = err.Error(), j.Source
	} else {
		r.Finished = true
	}
	r.Kept = append(r.Kept, x.Kept...)
	if err := x.Sync(); err != nil {
		return nil, fmt.Errorf("recover %s: %w", w.dir, w.unfinished(err))
	}
	if err := w.refs.Update(map[string]gitfmt.Hash{refs.WorldPrefix + w.key: j.Head}); err != nil {
		return nil, err
	}
	// The journal goes last: after a crash before that, the recovery runs again and ends the same.
	if err := w.journal.Remove(); err != nil {
		return nil, err
	}
	w.unsettled = nil
	return r, nil
}

// Abandon gives up an interrupted restore that Recover can neither complete nor roll back. It
// returns nil if there was none. It writes and deletes no file of the world: some paths are as
// in the target, the others as in the source, and from now on every difference to the snapshot
// that the world was last known at counts as edited. Both ends stay in the store. Only the
// restore's own temporary files are removed, as far as possible, and directories that it made
// writable get their modes back.
func (w *World) Abandon(ctx context.Context) (*Recovery, error) {
	end, err := w.begin(ctx, changing)
	if err != nil {
		return nil, err
	}
	defer end()
	j, err := w.journal.Read()
	if j == nil && err == nil {
		return nil, nil
	}
	r := &Recovery{Abandoned: true, Kept: []Skip{}}
	if err == nil { // nothing is known of a journal that cannot be read
		r.Source, r.Target = ID(j.Source.String()), ID(j.Target.String())
		if root, err := w.openRoot(); err == nil {
			restore.Resume(w.effects(), root.Fd, j).CleanUp(j)
			root.Close()
		}
	}
	w.unsettled = nil
	return r, w.journal.Remove()
}

// unfinished returns an error about an interrupted restore of this world.
func (w *World) unfinished(err error) error {
	e := &UnfinishedError{Dir: w.dir, Store: w.store, Err: err}
	if w.opts.Task != defaultTask {
		e.Task = w.opts.Task
	}
	return e
}
