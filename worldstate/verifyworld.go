package worldstate

import (
	"anamnesis/worldstate/internal/gc"
	"context"
	"errors"
	"fmt"
)

// A Report is what Verify found. OK means that every object that any ref needs, or
// that any pack holds, has an intact copy, and that git can use each pack.
type Report = gc.Health

// A Problem is one thing that is gone or rotten, and one snapshot that needs it.
type Problem = gc.Problem

// Verify reads and hashes every object of the store's packs, and all that our refs
// reach, of all tasks and worlds. What is damaged is in the Report; the error is for
// what kept it from looking at all. It holds no lock; where it found damage, it looks
// again with the store's lock, since a collection of another process may have removed
// what it missed. After it found damage, a save writes anew what has rotted and still is
// in the world.
func (w *World) Verify(ctx context.Context) (Report, error) {
	r, err := w.verify(ctx, reading)
	if err != nil || r.OK && len(r.DamagedCopies) == 0 {
		return r, err
	}
	return w.verify(ctx, changing)
}

// verify looks once.
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
	// What is known of files rests on the store: the next save reads them
	// all, and writes anew what has rotted here and still is there.
	if err := w.track.Forget(); err != nil {
		return r, fmt.Errorf("verify: %w", err)
	}
	return r, nil
}
