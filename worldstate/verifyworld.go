package worldstate

import (
	"anamnesis/worldstate/internal/gc"
	"context"
	"errors"
	"fmt"
)

// A Report is what Verify found. OK means that every object that a ref needs or a pack holds
// has an intact copy, and that git can use each pack.
type Report = gc.Health

// A Problem is one missing or damaged object and one snapshot that needs it.
type Problem = gc.Problem

// Verify reads and hashes every object of the store's packs, and everything that our refs
// reach, of all tasks and worlds. The Report lists damage; the error means that the store could
// not be read at all. It holds no lock. If it finds damage, it checks again under the store's
// lock, since a collection of another process may have removed objects meanwhile. Afterwards a
// save writes damaged objects again that are still in the world.
func (w *World) Verify(ctx context.Context) (Report, error) {
	r, err := w.verify(ctx, reading)
	if err != nil || r.OK && len(r.DamagedCopies) == 0 {
		return r, err
	}
	return w.verify(ctx, changing)
}

func (w *World) verify(ctx context.Context, as access) (Report, error) {
	end, err := w.begin(ctx, as)
	if err != nil {
		return Report{}, err
	}
	defer end()
	r, err := gc.Verify(ctx, w.objects, w.refs, w.opts.Hook)
	if err != nil {
		return Report{}, err
	}
	r.Unfinished = errors.Is(w.checkNoJournal(), ErrUnfinished)
	if as == reading || r.OK && len(r.DamagedCopies) == 0 {
		return r, nil
	}
	// The stat cache relies on the store: without it, the next save reads all files and writes
	// damaged objects again.
	if err := w.track.Forget(); err != nil {
		return r, fmt.Errorf("verify: %w", err)
	}
	return r, nil
}
