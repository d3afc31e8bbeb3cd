package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/opstream/durable"
	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// Every save writes one pack. If the program has written more than Store.MaxPacks, the small ones are
// merged into one: their objects are copied as they are stored, without compressing them again.
// The new pack and its index are durable and in place before the first old one is removed, so
// that a kill leaves at worst objects that are stored twice until the next merge. A process
// that reads meanwhile has the old packs open, or looks up again (see Open).

const (
	// maxPacks is the number of packs above which some are merged.
	maxPacks = 50
	// packGrowth: a pack at least this many times as large as all smaller ones together is not
	// merged, so that the first saves are not copied again and again.
	packGrowth = 2
)

// SmallPacks returns how many packs, from the smallest, to merge: all up to the largest that is
// smaller than packGrowth times the sum below it. sizes are in bytes, ascending.
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

// Consolidate merges small packs if there are too many. The caller holds the store's lock.
func (s *Store) Consolidate(ctx context.Context, pool *Pool, hook func(string)) error {
	if len(s.AllPacks()) <= s.MaxPacks { // before OurPacks, which reads a file beside each pack
		return nil
	}
	packs, err := s.OurPacks()
	if err != nil || len(packs) <= s.MaxPacks {
		return err
	}
	sizes := make([]int64, len(packs))
	for i, p := range packs {
		sizes[i] = p.bytes
	}
	return s.Merge(ctx, packs[:SmallPacks(sizes)], pool, hook)
}

// Merge writes several packs as one and removes them. If an object is damaged, it removes
// nothing. A pack with deltas is left alone.
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
	if len(done) < 2 { // the others have deltas, and a copy of one pack gains nothing
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

// Absorb copies the objects of the packs in a directory into one new pack of the store. The caller holds the
// store's lock.
func (s *Store) Absorb(dir string, pool *Pool) error {
	from := New(dir)
	from.packs = dir
	defer from.Close()
	if err := from.Refresh(); err != nil {
		return err
	}
	out := NewWriter(s.PackDir(), func(string) {}, pool)
	defer out.Abort()
	for _, p := range from.AllPacks() {
		if copied, err := from.copyPack(out, p); err != nil || !copied {
			return fmt.Errorf("pack %s: %w", p.Name, cmp.Or(err, gitfmt.ErrCorrupt))
		}
	}
	return s.Publish(out, 0)
}

// copyPack copies all objects of a pack in its order, or none if it has deltas.
func (s *Store) copyPack(out *Writer, p *Pack) (copied bool, err error) {
	items := p.Entries()
	for _, it := range items {
		// A delta may name its base by distance, which changes when the copy leaves out an object that it has already.
		if kind, err := p.KindAt(it.Off); err != nil || kind >= gitfmt.OffsetDelta {
			return false, err
		}
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

// RemovePacks removes packs, except those in but; every object must be in another pack. It
// removes the index first, by which git finds a pack, and the .keep last, which marks the files
// as ours.
func (s *Store) RemovePacks(packs []*Pack, but []string, hook func(string)) error {
	gone := make(map[string]bool, len(packs))
	for _, p := range packs {
		gone[p.Name] = !slices.Contains(but, p.Name) // but is a new pack that has the name of a removed one
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
	return durable.Sync(s.PackDir())
}

// removeDerived durably removes files that git derives from several packs (git gc, git
// maintenance). If they name a removed pack, git takes the store for damaged. git can write
// them again.
func (s *Store) removeDerived(hook func(string)) error {
	for in, prefix := range map[string]string{"pack": "multi-pack-index", "info": "commit-graph"} {
		dir := filepath.Join(s.Dir, "objects", in)
		list, err := os.ReadDir(dir) // sorted, so that the index itself comes first
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", prefix, err)
		}
		removed := false
		for _, e := range list {
			if !strings.HasPrefix(e.Name(), prefix) || strings.HasSuffix(e.Name(), ".lock") { // of a running git
				continue
			}
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return fmt.Errorf("remove %s: %w", prefix, err)
			}
			hook(prefix + "-removed")
			removed = true
		}
		if removed {
			if err := durable.Sync(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sweep removes temporary files that killed processes left. The caller holds the store's lock, so
// that only a collection's temporary files can be in use.
func (s *Store) Sweep() {
	for _, d := range []string{s.Dir, s.PackDir(), filepath.Join(s.Dir, fsys.StateDir)} {
		list, err := os.ReadDir(d)
		if err != nil {
			continue // the operation reports it
		}
		for _, e := range list {
			if strings.HasPrefix(e.Name(), fsys.TempPrefix) {
				os.Remove(filepath.Join(d, e.Name()))
			}
		}
	}
	s.sweepPacks()
	if there, err := fsys.Exists(s.CollectDir()); !there || err != nil {
		return
	}
	turn, err := fsys.AcquireLock(context.Background(), s.Dir, fsys.CollectLock, 0)
	if err == nil { // otherwise a collection runs
		_ = os.RemoveAll(s.CollectDir())
		turn.Close()
	}
}

// CollectDir is the directory in which a collection writes its packs.
func (s *Store) CollectDir() string { return filepath.Join(s.Dir, fsys.StateDir, "collecting") }

// sweepPacks removes our packs that have no index, and files left beside them, as after a kill
// between two removals or two renames. The caller holds the store's lock.
func (s *Store) sweepPacks() {
	list, _ := os.ReadDir(s.PackDir()) // the operation reports it
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
				return // the .keep still marks the rest as ours
			}
		}
	}
}
