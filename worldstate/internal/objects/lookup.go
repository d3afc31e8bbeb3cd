package objects

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// Refresh looks for new and removed packs. No other operation of the World may run.
func (s *Store) Refresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.retired {
		p.Close()
	}
	s.retired = nil
	// The dot makes the stat, which follows no link, see the directory itself where a link leads to it.
	if now := fsys.StatSource(s.PackDir() + "/."); !s.listed.Equal(now) {
		if err := s.list(); err != nil {
			return err
		}
		s.listed = now
	}
	return s.followAlternates()
}

// GitTempPack begins the names of packs that git repack has written and not yet renamed. Their
// objects are in other packs until then.
const GitTempPack = ".tmp-"

// list reads the directory of packs; s.mu is held for writing. A damaged pack counts as absent:
// a save writes its objects again if the world still has them, and an operation that needs any
// other names it in an error.
func (s *Store) list() error {
	list, err := os.ReadDir(s.PackDir())
	if err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	there := make(map[string]bool, len(list))
	s.damaged = make(map[string]error)
	var came []*Pack
	for _, e := range list {
		name := e.Name()
		if !strings.HasSuffix(name, ".idx") || strings.HasPrefix(name, GitTempPack) {
			continue
		}
		there[name] = true
		if s.Packs[name] != nil {
			continue
		}
		p, err := OpenPack(filepath.Join(s.PackDir(), name))
		if fsys.Exhausted(err) {
			for _, p := range came {
				p.Close()
			}
			return fmt.Errorf("read store: %w", err)
		}
		if err == nil {
			came = append(came, p)
		} else if there, _ := fsys.Exists(filepath.Join(s.PackDir(), name)); there { // otherwise it was just removed
			s.damaged[name] = err
		}
	}
	s.drop(func(p *Pack) bool { return !there[p.Name] })
	for _, p := range came {
		s.add(p)
	}
	return nil
}

// DamagedPacks returns the damage of each pack that cannot be used, by the name of its index.
func (s *Store) DamagedPacks() map[string]error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.damaged)
}

// add adds a pack to the lookup; s.mu is held for writing.
func (s *Store) add(p *Pack) {
	s.Packs[p.Name] = p
	s.names = nil
	s.bySize = append(s.bySize, p)
	slices.SortFunc(s.bySize, func(a, b *Pack) int { return cmp.Compare(len(b.items), len(a.items)) })
}

// markDamaged marks the copy of an object that Lookup returns as damaged, and reports whether there
// is another copy.
func (s *Store) markDamaged(h gitfmt.Hash) bool {
	p, _ := s.Lookup(h)
	if p == nil {
		return false
	}
	s.mu.Lock()
	s.damagedCopies[objectCopy{p, h}] = true
	s.mu.Unlock()
	return s.Owns(h)
}

// HasIntact reports whether some pack holds an intact copy of an object. A damaged copy counts
// as absent, so that a save writes the object again.
func (s *Store) HasIntact(h gitfmt.Hash) bool {
	buf := s.Buffer()
	defer s.Buffers.Put(buf)
	for {
		p, it := s.Locate(h)
		if p == nil {
			return false
		}
		if _, err := p.Intact(it, nil, *buf); err == nil {
			return true
		}
		s.markDamaged(h)
	}
}

// drop removes packs from the lookup; s.mu is held for writing.
func (s *Store) drop(gone func(*Pack) bool) {
	before := len(s.Packs)
	for name, p := range s.Packs {
		if gone(p) {
			delete(s.Packs, name)
			s.retired = append(s.retired, p)
		}
	}
	if len(s.Packs) == before {
		return
	}
	s.names, s.bySize = nil, slices.DeleteFunc(s.bySize, gone)
}

// Published adds a pack that was just written to the lookup.
func (s *Store) Published(idxPath string) error {
	p, err := OpenPack(idxPath)
	if err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Packs[p.Name] != nil {
		p.Close() // it is listed already
		return nil
	}
	s.add(p)
	return nil
}

// PackNames returns the sorted names of the packs, by which the stat cache checks that its objects
// are still stored. The caller must not change the list.
func (s *Store) PackNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = slices.Sorted(maps.Keys(s.Packs))
	}
	return s.names
}

// Lookup returns the pack that holds an intact copy of an object, as far as is known, and its
// offset there; nil if there is none.
func (s *Store) Lookup(h gitfmt.Hash) (*Pack, int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.bySize {
		if off, ok := p.Find(h); ok && !s.damagedCopies[objectCopy{p, h}] {
			return p, off
		}
	}
	return nil, 0
}

// Locate is Lookup with the length and the checksum of the object's bytes in the pack.
func (s *Store) Locate(h gitfmt.Hash) (*Pack, Entry) {
	p, _ := s.Lookup(h)
	if p == nil {
		return nil, Entry{}
	}
	it, _ := p.Entry(h)
	return p, it
}

// AllPacks returns the packs that can be used, in no order.
func (s *Store) AllPacks() []*Pack {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.Packs))
}

// Retry repeats f, which reads an object, while it finds a damaged copy and there is another
// one.
func (s *Store) Retry(h gitfmt.Hash, f func() error) error {
	for {
		err := f()
		damaged := errors.Is(err, gitfmt.ErrCorrupt) && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrWrongType)
		if !damaged || !s.markDamaged(h) {
			return err
		}
	}
}

// Has reports whether the store, or its alternate, lists the object. It does not read it.
func (s *Store) Has(h gitfmt.Hash) bool {
	s.mu.RLock()
	alternate := s.alternate
	s.mu.RUnlock()
	return s.Owns(h) || alternate != nil && alternate.Owns(h)
}

// Owns reports whether the store itself lists an object.
func (s *Store) Owns(h gitfmt.Hash) bool {
	p, _ := s.Lookup(h)
	return p != nil
}
