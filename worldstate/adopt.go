package worldstate

import (
	"context"
	"errors"
	"fmt"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// adoptBytes: how much is copied under one hold of the store's lock, which is
// what a save, or Close, may have to wait for: about a fifth of a second.
const adoptBytes = 16 << 20

// adopting is a World's copying in the background.
type adopting struct {
	stop context.CancelFunc
	done chan struct{}
}

// adoptLater begins to copy what is borrowed; w.mu is held.
func (w *World) adoptLater() {
	if w.objects.Lending() == nil {
		return
	}
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

// adoptSome copies one piece; more is false when nothing is borrowed any more.
func (w *World) adoptSome(ctx context.Context) (more bool, err error) {
	end, err := w.begin(ctx, changing)
	if err != nil {
		return false, err
	}
	defer end()
	return w.adoptLocked(adoptBytes)
}

func (w *World) adoptLocked(most int64) (more bool, err error) {
	if w.objects.Lending() == nil {
		return false, nil
	}
	pack := objects.NewWriter(w.objects.PackDir(), w.opts.Hook, &w.packs)
	defer pack.Abort()
	copied := int64(0)
	// A piece that was begun is finished whatever the caller's context says.
	err = w.eachBorrowed(context.Background(), func(h gitfmt.Hash, path string) error {
		if pack.Holds(h) {
			return nil
		}
		n, err := copyInto(w.objects, pack, h, path)
		if err != nil {
			return err
		}
		if copied += n; copied >= most {
			return errEnough
		}
		return nil
	})
	more = errors.Is(err, errEnough)
	if err != nil && !more {
		return false, err
	}
	if err := w.objects.Publish(pack, w.opts.SizeLimitBytes); err != nil {
		return false, err
	}
	if err := w.objects.Consolidate(context.Background(), &w.packs, w.opts.Hook); err != nil {
		return false, err
	}
	if more {
		return true, nil
	}
	w.opts.Hook("adopted")
	return false, w.objects.StopBorrowing()
}

var errEnough = errors.New("the piece is full")

// eachBorrowed calls f for every blob that a snapshot of the store needs and
// the store itself does not hold; for some more than once.
func (w *World) eachBorrowed(ctx context.Context, f func(h gitfmt.Hash, path string) error) error {
	refs, err := w.refs.All()
	if err != nil {
		return err
	}
	commits, err := w.history(ctx, refs, func(string) bool { return true })
	if err != nil {
		return err
	}
	seen := make(map[gitfmt.Hash]bool)
	for _, c := range commits {
		if c.Missing != nil {
			continue // what it borrowed is unknown
		}
		if err := eachBlob(w.objects, c.Tree, "", seen, 0, func(h gitfmt.Hash, path string) error {
			if w.objects.Owns(h) {
				return nil
			}
			return f(h, path)
		}); err != nil {
			return err
		}
	}
	return nil
}

// copyInto copies a blob, and says how long it is.
func copyInto(s *objects.Store, pack *objects.Writer, h gitfmt.Hash, path string) (int64, error) {
	data, err := s.ReadUpTo(h, gitfmt.BlobObject, path, objects.WholeFileBytes)
	if err == nil {
		return int64(len(data)), pack.Add(h, gitfmt.BlobObject, data)
	}
	if !errors.Is(err, objects.ErrTooLarge) {
		return 0, err
	}
	_, size, r, err := s.Open(h)
	if err != nil {
		return 0, &MissingObjectError{Object: h.String(), Path: path, Err: err}
	}
	defer r.Close()
	_, err = pack.AddStream(h, size, r)
	return size, err
}

// eachBlob calls f for the blobs beneath a tree, leaving out trees that were
// seen.
func eachBlob(s *objects.Store, tree gitfmt.Hash, path string, seen map[gitfmt.Hash]bool, depth int, f func(h gitfmt.Hash, path string) error) error {
	if seen[tree] {
		return nil
	}
	seen[tree] = true
	data, err := s.Read(tree, gitfmt.TreeObject, path)
	if err != nil {
		return err
	}
	items, err := gitfmt.DecodeTree(data)
	if err != nil || depth > gitfmt.MaxTreeDepth {
		return fmt.Errorf("tree %s: %w: %w", tree, gitfmt.ErrCorrupt, errors.Join(err))
	}
	for _, it := range items {
		p := fsys.Join(path, it.Name)
		if it.Mode == "40000" {
			err = eachBlob(s, it.Hash, p, seen, depth+1, f)
		} else if it.Mode != gitfmt.GitlinkMode {
			err = f(it.Hash, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
