package objects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/worldstate/internal/fsys"
)

// Every save writes one pack. When there are more than maxPacks of ours, the small ones
// are put together into one: their objects are copied as they are in the
// packs, nothing is compressed again. The new pack and its index are durable
// and in their places before the first old one goes, so a kill leaves, at
// worst, objects that are stored twice, which the next round puts right. A process
// that reads meanwhile has the old packs open, or looks again (open).

const (
	// maxPacks is how many packs may be there before some are put together.
	maxPacks = 50
	// packGrowth: a pack at least so many times as large as all smaller ones
	// together is left alone, so that what was saved first is not copied
	// again and again.
	packGrowth = 2
)

// SmallPacks says how many packs, from the small end, are to be put together:
// all up to the largest that is not packGrowth times what lies below it. sizes
// are in bytes and ascend.
func SmallPacks(sizes []int64) int {
	n, sum := 0, int64(0)
	for i, size := range sizes {
		if size < packGrowth*sum {
			n = i + 1
		}
		sum += size
	}
	return n
}

// Consolidate puts small packs together where there are too many. The store's
// lock is held.
func (s *Store) Consolidate(ctx context.Context, pool *Pool, hook func(string)) error {
	s.mu.RLock()
	count := len(s.Packs)
	s.mu.RUnlock()
	most := maxPacks
	if s.MaxPacks > 0 {
		most = s.MaxPacks
	}
	if count <= most {
		return nil
	}
	packs, err := s.OurPacks()
	if err != nil || len(packs) <= most {
		return err
	}
	sizes := make([]int64, len(packs))
	for i, p := range packs {
		if sizes[i], err = p.Size(); err != nil {
			return err
		}
	}
	return s.Merge(ctx, packs[:SmallPacks(sizes)], pool, hook)
}

// Merge writes one pack of several and removes them. Nothing is removed when
// an object's bytes are not as they were written. A pack that cannot be copied
// object by object is left alone.
func (s *Store) Merge(ctx context.Context, packs []*Pack, pool *Pool, hook func(string)) error {
	if len(packs) < 2 {
		return nil
	}
	out := NewWriter(s.PackDir(), hook, pool)
	defer out.Abort()
	done := packs[:0:0]
	for _, p := range packs {
		if err := ctx.Err(); err != nil {
			return err
		}
		copied, err := s.copyPack(out, p)
		if err != nil {
			return fmt.Errorf("consolidate %s: %w", p.Path, err)
		}
		if copied {
			done = append(done, p)
		}
	}
	if len(done) < 2 {
		return nil
	}
	idx, err := out.Finish()
	if err != nil || idx == "" {
		return err
	}
	if err := s.Published(idx); err != nil {
		return err
	}
	hook("packs-merged")
	return s.RemovePacks(done, []string{fsys.Base(idx)}, hook)
}

// copyPack copies a pack's objects, in the order they are in it: all, or none
// where one cannot be copied by itself.
func (s *Store) copyPack(out *Writer, p *Pack) (copied bool, err error) {
	items, err := p.Entries()
	if err != nil {
		return false, err
	}
	if ok, err := p.isPlain(items); !ok {
		return false, err
	}
	buf := s.Buffer()
	defer s.Buffers.Put(buf)
	for _, it := range items {
		if err := out.CopyRaw(p, it, *buf); err != nil {
			return false, fmt.Errorf("object %s: %w", it.Hash, err)
		}
	}
	return true, nil
}

// RemovePacks removes packs whose objects all are elsewhere, in the packs but:
// the index first, since it is what says that a pack is there, and the .keep last,
// since it says whose the rest is.
func (s *Store) RemovePacks(packs []*Pack, but []string, hook func(string)) error {
	gone := make(map[string]bool, len(packs))
	for _, p := range packs {
		gone[p.Name] = !slices.Contains(but, p.Name) // else it was just made, and took the name of one that had been removed
	}
	if err := s.removeDerived(hook); err != nil {
		return err
	}
	for _, p := range packs {
		if !gone[p.Name] {
			continue
		}
		for _, ext := range []string{".idx", ".pack", ".rev", ".bitmap", ".mtimes", KeepExt} {
			err := os.Remove(p.Beside(ext))
			if err != nil && !errors.Is(err, os.ErrNotExist) { // another process may have removed it
				return fmt.Errorf("remove pack: %w", err)
			}
			if ext == ".idx" || ext == ".pack" {
				hook("removed" + ext)
			}
		}
	}
	s.mu.Lock()
	s.drop(func(p *Pack) bool { return gone[p.Name] })
	s.mu.Unlock()
	return fsys.SyncDir(s.PackDir())
}

// removeDerived removes, durably, what a user's git may have written over several packs
// or noted of all commits (git gc, git maintenance): git takes the store for damaged
// where it names what is gone. Git does without it, and can write it anew.
func (s *Store) removeDerived(hook func(string)) error {
	for in, prefix := range map[string]string{"pack": "multi-pack-index", "info": "commit-graph"} {
		dir := filepath.Join(s.Dir, "objects", in)
		list, err := os.ReadDir(dir) // the index itself comes first
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", prefix, err)
		}
		removed := false
		for _, e := range list {
			if !strings.HasPrefix(e.Name(), prefix) || strings.HasSuffix(e.Name(), ".lock") { // of a git that writes one
				continue
			}
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return fmt.Errorf("remove %s: %w", prefix, err)
			}
			hook(prefix + "-removed")
			removed = true
		}
		if removed {
			if err := fsys.SyncDir(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sweep removes the temporary files killed processes left, and marks the packs of an
// old store. The store's lock is held, so no temporary file but a collection's is in use.
func (s *Store) Sweep() {
	for _, d := range []string{s.Dir, s.PackDir(), filepath.Join(s.Dir, fsys.StateDir)} {
		list, err := os.ReadDir(d)
		if err != nil {
			continue // the operation itself will say so
		}
		for _, e := range list {
			if strings.HasPrefix(e.Name(), fsys.TempPrefix) {
				os.Remove(filepath.Join(d, e.Name()))
			}
		}
	}
	_ = s.sweepPacks()   // likewise
	_ = s.markOldPacks() // those that it leaves count as the user's
	if there, err := fsys.Exists(s.CollectDir()); !there || err != nil {
		return
	}
	if turn, err := fsys.AcquireLock(context.Background(), s.Dir, fsys.CollectLock, 0); err == nil { // else a collection runs
		_ = os.RemoveAll(s.CollectDir())
		turn.Close()
	}
}

// CollectDir is where a collection writes until it switches over.
func (s *Store) CollectDir() string { return filepath.Join(s.Dir, fsys.StateDir, "collecting") }

// sweepPacks removes our packs without an index, and what was beside one
// that is gone: what a kill between two removals, or between two renames, leaves.
// The store's lock is held. A pack without our .keep is not ours to remove.
func (s *Store) sweepPacks() error {
	list, err := os.ReadDir(s.PackDir())
	if err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	for _, e := range list {
		name, isKeep := strings.CutSuffix(e.Name(), KeepExt)
		stem := filepath.Join(s.PackDir(), name)
		if !isKeep {
			continue
		}
		if there, err := fsys.Exists(stem + ".idx"); there || err != nil {
			continue
		}
		if ours, err := IsOurKeep(stem + KeepExt); !ours || err != nil {
			continue
		}
		for _, ext := range []string{".pack", ".rev", ".bitmap", ".mtimes", KeepExt} {
			if err := os.Remove(stem + ext); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("remove pack: %w", err)
			}
		}
	}
	return nil
}
