package worldstate

import (
	"context"

	"anamnesis/worldstate/internal/history"
	"anamnesis/worldstate/internal/objects"
)

// adoptBytes: how much is copied under one hold of the store's lock, which is
// what a save, or Close, may have to wait for: about a fifth of a second.
const adoptBytes = 16 << 20

// adopting is a World's copying of borrowed objects in the background.
type adopting struct {
	stop context.CancelFunc
	done chan struct{}
}

// adoptLater begins to copy what is borrowed; w.mu is held.
func (w *World) adoptLater() {
	if w.adopts != nil {
		select {
		case <-w.adopts.done: // it ended on an error
		default:
			return
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	a := &adopting{stop: stop, done: make(chan struct{})}
	w.adopts = a
	go func() {
		defer close(a.done)
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = w.adoptSome(ctx); err != nil {
				return // a lock, a disk, an object that is gone: the next save tries again, and Verify says which
			}
		}
	}()
}

// endAdopting waits for the piece being copied; w.mu is not held.
func (w *World) endAdopting() {
	w.mu.Lock()
	a := w.adopts
	w.mu.Unlock()
	if a != nil {
		a.stop()
		<-a.done
	}
}

// adoptSome copies one piece; more is false when nothing is borrowed any more. A piece
// that was begun is finished whatever the context says.
func (w *World) adoptSome(ctx context.Context) (more bool, err error) {
	end, err := w.begin(ctx, changing)
	if err != nil {
		return false, err
	}
	defer end()
	byName, err := w.refs.All()
	if err != nil || w.objects.Lending() == nil {
		return false, err
	}
	ctx = context.WithoutCancel(ctx)
	pack := objects.NewWriter(w.objects.PackDir(), w.opts.Hook, &w.packs)
	defer pack.Abort()
	if more, err = history.CopyBorrowed(ctx, w.objects, byName, pack, adoptBytes); err != nil {
		return false, err
	}
	if err := w.objects.Publish(pack, w.opts.SizeLimitBytes); err != nil {
		return false, err
	}
	if err := w.objects.Consolidate(ctx, &w.packs, w.opts.Hook); err != nil || more {
		return err == nil, err
	}
	w.opts.Hook("adopted")
	return false, w.objects.StopBorrowing()
}
