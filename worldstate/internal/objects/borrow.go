package objects

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"anamnesis/worldstate/internal/fsys"
)

// Borrowed objects are in a user's repository and nowhere else. The store
// lists that repository in objects/info/alternates, which git reads, too; so
// long as it does, snapshots may name what is there. They are copied in pieces,
// each under the store's lock, by a goroutine of the World that saved them, and
// the rest by the next save; each is hashed as it is copied. When all
// are ours, the line goes.

func (s *Store) AlternatesPath() string {
	return filepath.Join(s.Dir, "objects", "info", "alternates")
}

// followAlternates opens what objects are borrowed from, or closes it again;
// s.mu is held for writing.
func (s *Store) followAlternates() error {
	data, err := os.ReadFile(s.AlternatesPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read store: %w", err)
	}
	dir, _, _ := strings.Cut(string(data), "\n")
	if s.lender != nil && dir == filepath.Join(s.lender.Dir, "objects") {
		_ = s.lender.Refresh() // as below
		return nil
	}
	if s.lender != nil {
		s.lender.Close()
		s.lender = nil
	}
	if dir == "" {
		return nil
	}
	s.lender = New(filepath.Dir(dir))
	_ = s.lender.Refresh() // gone or damaged: an object that cannot be had is named where it is needed
	return nil
}

// Borrow makes a repository's objects ours to name, durably: what is in its
// packs is synced first, since git may not have.
func (s *Store) Borrow(from *Store) error {
	objects := filepath.Join(from.Dir, "objects")
	from.mu.RLock()
	var paths []string
	for _, p := range from.Packs {
		paths = append(paths, p.Path, filepath.Join(from.PackDir(), p.Name))
	}
	from.mu.RUnlock()
	for _, path := range append(paths, from.PackDir()) {
		if err := fsys.SyncPath(path); err != nil {
			return err
		}
	}
	if err := fsys.WriteFileDurably(s.AlternatesPath(), []byte(objects+"\n")); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.followAlternates()
}

// StopBorrowing forgets, durably, the repository that objects were borrowed from.
// All of them are ours.
func (s *Store) StopBorrowing() error {
	if err := os.Remove(s.AlternatesPath()); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.followAlternates(); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(s.AlternatesPath()))
}

// Lending returns the store objects are borrowed from, nil when there is none.
func (s *Store) Lending() *Store {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.lender
}
