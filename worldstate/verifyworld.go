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

// verifyTries is how often Verify looks at a store in which packs or refs came or went
// while it looked, the last time with the store's lock.
const verifyTries = 4

// Verify reads and hashes every object of the store's packs, and all that any ref
// reaches, of all tasks and worlds. What is damaged is in the Report; the error is for
// what kept it from looking at all. It holds no lock: where it found damage and the
// store was changed meanwhile, a collection of another process for instance, it looks
// again. After it found damage, a save writes anew what has rotted and still is in
// the world.
func (w *World) Verify(ctx context.Context) (Report, error) {
	for try, as := 1, reading; ; try++ {
		if try == verifyTries {
			as = changing
		}
		r, moved, err := w.verifyOnce(ctx, as)
		if err != nil || !moved {
			return r, err
		}
	}
}

// verifyOnce looks once; moved reports whether the store was changed meanwhile.
func (w *World) verifyOnce(ctx context.Context, as access) (r Report, moved bool, err error) {
	end, err := w.begin(ctx, as)
	if err != nil {
		return Report{}, false, err
	}
	defer end()
	r, moved, err = gc.Verify(ctx, w.objects, w.refs, w.opts.Hook)
	if err != nil {
		return Report{}, false, err
	}
	r.Unfinished = errors.Is(w.checkNoJournal(), ErrUnfinished)
	if moved || r.OK && len(r.DamagedCopies) == 0 {
		return r, moved, nil
	}
	// What is known of files rests on the store: the next save reads them
	// all, and writes anew what has rotted here and still is there.
	if err := w.track.Forget(); err != nil {
		return r, false, fmt.Errorf("verify: %w", err)
	}
	return r, false, nil
}
