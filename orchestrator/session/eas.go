package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"anamnesis/anamnesis/attention"
)

// maxOverlayBytes is how much of an overlay is read; LoadTable refuses less.
const maxOverlayBytes = 8 << 20

// EASProjectFile returns the path of a directory's own rows of the EAS table.
func EASProjectFile(dir string) string { return filepath.Join(dir, ".anamnesis", "eas.yaml") }

// LoadEAS reads the built-in table and the overlays that exist. An empty path is
// none.
func LoadEAS(builtin []byte, paths ...string) (*attention.Table, error) {
	var overlays []attention.Overlay
	for _, path := range paths {
		data, err := ReadOverlay(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, Usagef("%s:1: cannot be read: %v; make it a readable file or remove it", path, errors.Unwrap(err))
		}
		overlays = append(overlays, attention.Overlay{Name: path, Data: data})
	}
	t, err := attention.LoadTable(builtin, overlays...)
	if wrong := (*attention.TableError)(nil); errors.As(err, &wrong) {
		return nil, &UsageError{err}
	}
	return t, err
}

// ReadOverlay reads an overlay, which must be a regular file.
func ReadOverlay(path string) ([]byte, error) {
	if path == "" {
		return nil, fs.ErrNotExist
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", path, errors.New("not a regular file"))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxOverlayBytes))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

// Span looks a model up in the EAS table of a directory.
func (s *Service) Span(dir, lookup string) (attention.Span, error) {
	table, err := s.table(dir)
	if err != nil {
		return attention.Span{}, err
	}
	return table.Lookup(lookup), nil
}

func (s *Service) table(dir string) (*attention.Table, error) {
	return LoadEAS(s.o.EAS, s.Home.EASOverlay(), EASProjectFile(dir))
}

// knownModel reports whether a directory's EAS table, read on first use, has a model. If it
// cannot be read, no model is known.
func (s *Service) knownModel(dir string) func(string) bool {
	table := sync.OnceValue(func() *attention.Table {
		t, err := s.table(dir)
		if err != nil {
			return nil
		}
		return t
	})
	return func(name string) bool { t := table(); return t != nil && t.Lookup(name).Known }
}
