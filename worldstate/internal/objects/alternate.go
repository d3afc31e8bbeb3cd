package objects

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Early versions left the blobs of a first save in the user's repository, which the store then
// names in objects/info/alternates. Such blobs are read there, and are otherwise not the store's:
// a save stores those of present files, and a collection stores all and removes the file.

// AlternatesPath is the file that names the user's repository.
func (s *Store) AlternatesPath() string {
	return filepath.Join(s.Dir, "objects", "info", "alternates")
}

// followAlternates opens the repository that the store names, or closes it if it names none any
// longer. The caller holds s.mu for writing.
func (s *Store) followAlternates() error {
	data, err := os.ReadFile(s.AlternatesPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read store: %w", err)
	}
	dir, _, _ := strings.Cut(string(data), "\n")
	if s.alternate != nil && dir != filepath.Join(s.alternate.Dir, "objects") {
		s.alternate.Close()
		s.alternate = nil
	}
	if dir == "" {
		return nil
	}
	if s.alternate == nil {
		s.alternate = New(filepath.Dir(dir))
	}
	_ = s.alternate.Refresh() // the operation that needs an object of a missing repository names the object
	return nil
}
