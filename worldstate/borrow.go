//go:build unix

package worldstate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// Borrowed objects stand in a person's repository and nowhere else. The store
// lists that repository in objects/info/alternates, which git reads, too; so
// long as it does, snapshots may name what is there. They are copied in pieces,
// each under the store's lock, by a goroutine of the World that saved them, and
// the rest by whoever saves next; each is hashed as it is copied. When all
// are ours, the line goes.

// adoptBytes: how much is copied under one hold of the store's lock, which is
// what a save, or Close, may have to wait for: about a fifth of a second.
const adoptBytes = 16 << 20

func (s *objectStore) alternatesPath() string {
	return filepath.Join(s.dir, "objects", "info", "alternates")
}

// borrowedFrom gives the directory objects are borrowed from; "" when there is
// none.
func (s *objectStore) borrowedFrom() (string, error) {
	data, err := os.ReadFile(s.alternatesPath())
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read store: %w", err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return line, nil
}

// followAlternates opens what objects are borrowed from, or closes it again;
// s.mu is held for writing.
func (s *objectStore) followAlternates() error {
	dir, err := s.borrowedFrom()
	if err != nil {
		return err
	}
	if s.lender != nil && dir == filepath.Join(s.lender.dir, "objects") {
		_ = s.lender.refresh() // as below
		return nil
	}
	if s.lender != nil {
		s.lender.close()
		s.lender = nil
	}
	if dir == "" {
		return nil
	}
	s.lender = newObjectStore(filepath.Dir(dir))
	_ = s.lender.refresh() // gone or damaged: an object that cannot be had is named where it is needed
	return nil
}

// borrow makes a repository's objects ours to name, durably: what is in its
// packs is synced first, since git may not have.
func (s *objectStore) borrow(from *objectStore) error {
	objects := filepath.Join(from.dir, "objects")
	from.mu.RLock()
	var paths []string
	for _, p := range from.packs {
		paths = append(paths, p.path, filepath.Join(from.packDir(), p.name))
	}
	from.mu.RUnlock()
	for _, path := range append(paths, from.packDir()) {
		if err := fsys.SyncPath(path); err != nil {
			return err
		}
	}
	if err := fsys.WriteFileDurably(s.alternatesPath(), []byte(objects+"\n")); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.followAlternates()
}

// lending gives the store objects are borrowed from, nil when there is none.
func (s *objectStore) lending() *objectStore {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.lender
}

// adopting is a World's copying in the background.
type adopting struct {
	stop context.CancelFunc
	done chan struct{}
}

// adoptLater begins to copy what is borrowed; w.mu is held.
func (w *World) adoptLater() {
	if w.objects.lending() == nil {
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
	if w.objects.lending() == nil {
		return false, nil
	}
	pack := newPackWriter(w.objects.packDir(), w.opts.Hook, &w.packs)
	defer pack.abort()
	copied := int64(0)
	// A piece that is begun is finished whatever the caller's context says.
	err = w.eachBorrowed(context.Background(), func(h gitfmt.Hash, path string) error {
		if pack.holds(h) {
			return nil
		}
		n, err := w.objects.copyInto(pack, h, path)
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
	if err := w.publish(pack); err != nil {
		return false, err
	}
	if err := w.objects.consolidate(context.Background(), &w.packs, w.opts.Hook); err != nil {
		return false, err
	}
	if more {
		return true, nil
	}
	w.opts.Hook("adopted")
	if err := os.Remove(w.objects.alternatesPath()); err != nil {
		return false, fmt.Errorf("adopt: %w", err)
	}
	w.objects.mu.Lock()
	defer w.objects.mu.Unlock()
	if err := w.objects.followAlternates(); err != nil {
		return false, err
	}
	return false, fsys.SyncDir(filepath.Dir(w.objects.alternatesPath()))
}

var errEnough = errors.New("the piece is full")

// copyInto copies a blob, and says how long it is.
func (s *objectStore) copyInto(pack *packWriter, h gitfmt.Hash, path string) (int64, error) {
	data, err := s.readUpTo(h, gitfmt.BlobObject, path, wholeFileBytes)
	if err == nil {
		return int64(len(data)), pack.add(h, gitfmt.BlobObject, data)
	}
	if !errors.Is(err, errTooLarge) {
		return 0, err
	}
	_, size, r, err := s.open(h)
	if err != nil {
		return 0, &MissingObjectError{Object: h.String(), Path: path, Err: err}
	}
	defer r.Close()
	_, err = pack.addStream(h, size, r)
	return size, err
}

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
			continue // nobody can say what it borrowed
		}
		if err := w.objects.eachBlob(c.Tree, "", seen, 0, func(h gitfmt.Hash, path string) error {
			if w.objects.owns(h) {
				return nil
			}
			return f(h, path)
		}); err != nil {
			return err
		}
	}
	return nil
}

// eachBlob calls f for the blobs beneath a tree, leaving out trees that were
// seen.
func (s *objectStore) eachBlob(tree gitfmt.Hash, path string, seen map[gitfmt.Hash]bool, depth int, f func(h gitfmt.Hash, path string) error) error {
	if seen[tree] {
		return nil
	}
	seen[tree] = true
	data, err := s.read(tree, gitfmt.TreeObject, path)
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
			err = s.eachBlob(it.Hash, p, seen, depth+1, f)
		} else if it.Mode != gitfmt.GitlinkMode {
			err = f(it.Hash, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
