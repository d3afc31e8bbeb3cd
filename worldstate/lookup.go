package worldstate

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// dirStamp tells whether the entries of the two directories objects come and go
// in may have changed.
type dirStamp [2]fsys.Sight

// stampDirs looks at the two directories.
func (s *objectStore) stampDirs() (st dirStamp, err error) {
	now := time.Now()
	for i, d := range []string{s.packDir(), filepath.Join(s.dir, "objects")} {
		var at unix.Stat_t
		if err := unix.Stat(d, &at); err != nil {
			return st, fmt.Errorf("read store: %w", &os.PathError{Op: "stat", Path: d, Err: err})
		}
		st[i] = fsys.Sight{Stamp: fsys.NewStamp(&at)}
		st[i].Racy = fsys.Racy(st[i].Stamp, now)
	}
	return st, nil
}

// holds reports whether what was listed at st is still all there is: nothing
// changed since, and the last change was not too young then for another one
// to show.
func (st *dirStamp) holds(now dirStamp) bool {
	return st[0].Ino != 0 && st[0].Sure(now[0].Stamp) && st[1].Sure(now[1].Stamp)
}

// refresh looks for packs that came or went. No other operation of the World
// runs.
func (s *objectStore) refresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.retired {
		p.close()
	}
	s.retired = nil
	now, err := s.stampDirs()
	if err != nil {
		return err
	}
	if !s.listed.holds(now) {
		if err := s.list(); err != nil {
			return err
		}
		s.listed = now
	}
	return s.followAlternates()
}

// gitTempPack begins the names of packs that a git repack has written and not yet
// put in their places. What they hold stands in others until then.
const gitTempPack = ".tmp-"

// list reads the directory of packs; s.mu is held for writing. A pack that is
// damaged counts as absent: a save writes what it held anew, as far as the
// world still has it, and what needs the rest is refused by name.
func (s *objectStore) list() error {
	s.git = nil
	s.loose = false
	dirs, err := os.ReadDir(filepath.Join(s.dir, "objects"))
	if err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	for _, d := range dirs {
		s.loose = s.loose || len(d.Name()) == 2
	}
	list, err := os.ReadDir(s.packDir())
	if err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	there := make(map[string]bool, len(list))
	s.damaged = make(map[string]error)
	var came []*packFile
	for _, e := range list {
		name := e.Name()
		if !strings.HasSuffix(name, ".idx") || strings.HasPrefix(name, gitTempPack) {
			continue
		}
		there[name] = true
		if s.packs[name] != nil {
			continue
		}
		p, err := openPack(filepath.Join(s.packDir(), name))
		if fsys.Exhausted(err) {
			for _, p := range came {
				p.close()
			}
			return fmt.Errorf("read store: %w", err)
		}
		if err != nil {
			s.damaged[name] = err
			continue
		}
		came = append(came, p)
	}
	s.drop(func(p *packFile) bool { return !there[p.name] })
	for _, p := range came {
		s.add(p)
	}
	return nil
}

// add takes a pack into the look-up; s.mu is held for writing.
func (s *objectStore) add(p *packFile) {
	s.packs[p.name] = p
	s.names = nil
	var items []gitfmt.PackItem
	large := p.n > smallPack
	if !large {
		var err error
		items, err = p.items()
		large = err != nil // asked object by object: some may be read
	}
	if large {
		s.large = append(s.large, p)
		sort.Slice(s.large, func(i, j int) bool { return s.large[i].n > s.large[j].n })
		return
	}
	for _, it := range items {
		if !s.rotten[rottenObject{p, it.Hash}] {
			s.small[it.Hash] = place{p, it.Off}
		}
	}
}

// condemn remembers that the copy of an object which lookup gives is damaged,
// and reports whether there is another one.
func (s *objectStore) condemn(h gitfmt.Hash) bool {
	p, _ := s.lookup(h)
	if p == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rotten[rottenObject{p, h}] = true
	delete(s.small, h)
	for _, p := range s.packs {
		if off, ok := p.find(h); ok && !s.rotten[rottenObject{p, h}] {
			s.small[h] = place{p, off}
			return true
		}
	}
	return false
}

// hasIntact is owns for an object whose bytes are at hand: one that the store
// lists and that has rotted there counts as absent, so that it is written anew.
func (s *objectStore) hasIntact(h gitfmt.Hash) bool {
	buf := s.buffer()
	defer s.buffers.Put(buf)
	for {
		p, it := s.locate(h)
		if p == nil {
			return s.looseHas(h) // what is borrowed is not ours: with the bytes at hand it becomes so
		}
		if _, err := p.intact(it, nil, *buf); err == nil {
			return true
		}
		s.condemn(h)
	}
}

// drop takes packs out of the look-up; s.mu is held for writing.
func (s *objectStore) drop(gone func(*packFile) bool) {
	before := len(s.packs)
	for name, p := range s.packs {
		if gone(p) {
			delete(s.packs, name)
			s.retired = append(s.retired, p)
		}
	}
	if len(s.packs) == before {
		return
	}
	rest := s.packs
	s.packs, s.large, s.small = make(map[string]*packFile, len(rest)), nil, make(map[gitfmt.Hash]place)
	s.names = nil
	for _, p := range rest {
		s.add(p)
	}
}

// published takes a pack just written into the look-up.
func (s *objectStore) published(idxPath string) error {
	p, err := openPack(idxPath)
	if err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.packs[p.name] != nil {
		p.close() // what it holds is listed already
		return nil
	}
	s.add(p)
	return nil
}

// empty reports whether the store itself holds no object at all.
func (s *objectStore) empty() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.packs) == 0 && !s.loose
}

// generation lists the packs, the stat cache's ground to trust that an object
// it names is stored. The list is not to be changed.
func (s *objectStore) generation() []string {
	s.mu.Lock()
	if s.names == nil {
		s.names = slices.Sorted(maps.Keys(s.packs))
	}
	names, lender := s.names, s.lender
	s.mu.Unlock()
	if lender != nil {
		names = slices.Concat(names, lender.generation())
		slices.Sort(names)
	}
	return names
}

// lookup gives the pack that holds an object, nil when none does.
func (s *objectStore) lookup(h gitfmt.Hash) (*packFile, int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if at, ok := s.small[h]; ok {
		return at.pack, at.off
	}
	for _, p := range s.large {
		if off, ok := p.find(h); ok && !s.rotten[rottenObject{p, h}] {
			return p, off
		}
	}
	return nil, 0
}

// locate is lookup with the length and the checksum of the object's bytes in the
// pack.
func (s *objectStore) locate(h gitfmt.Hash) (*packFile, packEntry) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if at, ok := s.small[h]; ok {
		if it, ok := at.pack.entry(h); ok {
			return at.pack, it
		}
	}
	for _, p := range s.large {
		if it, ok := p.entry(h); ok && !s.rotten[rottenObject{p, h}] {
			return p, it
		}
	}
	return nil, packEntry{}
}

// without gives the packs that are none of some.
func (s *objectStore) without(some []*packFile) []*packFile {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*packFile
	for _, p := range s.packs {
		if !slices.Contains(some, p) {
			out = append(out, p)
		}
	}
	return out
}

// holds reports whether one of some packs lists an object.
func holds(packs []*packFile, h gitfmt.Hash) bool {
	return slices.ContainsFunc(packs, func(p *packFile) bool {
		_, ok := p.find(h)
		return ok
	})
}

// otherwise does f, which reads an object, again for as long as it finds a
// damaged copy and there is another one.
func (s *objectStore) otherwise(h gitfmt.Hash, f func() error) error {
	for {
		err := f()
		if !errors.Is(err, gitfmt.ErrCorrupt) || errors.Is(err, errTooLarge) || errors.Is(err, errWrongType) || !s.condemn(h) {
			return err
		}
	}
}

// has reports whether the store, or what it borrows from, lists the object; it
// does not read it.
func (s *objectStore) has(h gitfmt.Hash) bool {
	if s.owns(h) {
		return true
	}
	lender := s.lending()
	return lender != nil && lender.packed(h) // what is loose there may not be durable
}

// owns reports whether the store itself lists an object.
func (s *objectStore) owns(h gitfmt.Hash) bool { return s.packed(h) || s.looseHas(h) }

// unread is an error where an object that was called absent may be there: part of
// an index could not be read.
func (s *objectStore) unread() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.packs {
		if p.unread.Load() {
			return fmt.Errorf("read store: %w: the index %s could not be read", gitfmt.ErrCorrupt, p.name)
		}
	}
	return nil
}

func (s *objectStore) packed(h gitfmt.Hash) bool {
	p, _ := s.lookup(h)
	return p != nil
}

// looseHas reports whether git made a file of an object.
func (s *objectStore) looseHas(h gitfmt.Hash) bool {
	s.mu.RLock()
	loose := s.loose
	s.mu.RUnlock()
	if !loose {
		return false
	}
	id := h.String()
	_, err := os.Stat(filepath.Join(s.dir, "objects", id[:2], id[2:]))
	return err == nil
}
