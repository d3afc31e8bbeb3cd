package worldstate

import (
	"context"

	"anamnesis/worldstate/internal/history"
	"anamnesis/worldstate/internal/objects"
)

// adoptBytes is how much is copied under one hold of the store's lock. A save or Close
// waits for that long: about a fifth of a second.
const adoptBytes = 16 << 20

// adopting is a goroutine of a World that copies borrowed objects.
type adopting struct {
	stop context.CancelFunc
	done chan struct{}
}

// adoptLater starts the copying of borrowed objects if it does not run. The caller holds w.mu.
func (w *World) adoptLater() {
	if w.adopts != nil {
		select {
		case <-w.adopts.done: // ended by an error
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
				return // the next save tries again, and Verify names a missing object
			}
		}
	}()
}

// endAdopting stops the copying and waits for its present piece. The caller does not hold w.mu.
func (w *World) endAdopting() {
	w.mu.Lock()
	a := w.adopts
	w.mu.Unlock()
	if a != nil {
		a.stop()
		<-a.done
	}
}

// adoptSome copies one piece. more is false if nothing is borrowed any longer. A canceled
// context does not interrupt a piece.
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
