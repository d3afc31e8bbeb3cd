package objects

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
)

// Each of our packs has a .keep beside it that holds one word. git gc and git repack leave
// packs with a .keep alone. Consolidations and collections change only packs with this .keep:
// what a user pushed, fetched, repacked or keeps stays as it is, and so do loose objects.

const (
	KeepExt  = ".keep"
	KeepWord = "anamnesis"
)

func (p *Pack) Beside(ext string) string { return strings.TrimSuffix(p.Path, ".pack") + ext }

// IsOurKeep reports whether the file is the .keep of one of our packs.
func IsOurKeep(path string) (bool, error) {
	data, err := os.ReadFile(path)
	// A git push of another user writes its own.
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || fsys.IsErrno(err, unix.EISDIR) {
		return false, nil
	}
	return string(bytes.TrimSpace(data)) == KeepWord, err
}

// OurPacks returns our packs, the smallest first.
func (s *Store) OurPacks() ([]*Pack, error) {
	var out []*Pack
	for _, p := range s.AllPacks() {
		ours, err := IsOurKeep(p.Beside(KeepExt))
		if err != nil {
			return nil, fmt.Errorf("read store: %w", err)
		}
		if ours {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *Pack) int {
		return cmp.Or(cmp.Compare(a.bytes, b.bytes), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}
