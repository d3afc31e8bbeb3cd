package gc

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// A user may work in a store with git: worktrees, a detached HEAD, a rebase or
// bisect half done, reflogs. What these name is no ref, and needed all the same. Git
// has many such files and gets more, so each of its text files is searched for ids,
// and each index for the bytes of one.

// notGits are the parts of a store that name nothing but by refs.
var notGits = []string{"objects", "refs", fsys.StateDir, "hooks", "info", "modules", "packed-refs", "config", "description"}

// userRoots returns the objects of the store that a user's git names by something else
// than a ref.
func userRoots(s *objects.Store) ([]gitfmt.Hash, error) {
	named := make(map[gitfmt.Hash]bool)
	err := filepath.WalkDir(s.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return nil // removed meanwhile
			}
			return err
		}
		rel := strings.TrimPrefix(path, s.Dir+string(filepath.Separator))
		if slices.Contains(notGits, rel) || strings.HasPrefix(rel, "worktrees/") && strings.Count(rel, "/") == 2 && d.Name() == "modules" {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		ids := textIDs
		if d.Name() == "index" || strings.HasPrefix(d.Name(), "sharedindex.") {
			ids = func(r io.Reader, named map[gitfmt.Hash]bool) error { return indexIDs(s, r, named) }
		}
		return ids(f, named)
	})
	if err != nil {
		return nil, fmt.Errorf("look for what git names: %w", err)
	}
	var out []gitfmt.Hash
	for h := range named {
		if s.Owns(h) {
			out = append(out, h)
		}
	}
	return out, nil
}

// textIDs takes each word of a text that is an id.
func textIDs(r io.Reader, named map[gitfmt.Hash]bool) error {
	const digits = 2 * len(gitfmt.Hash{})
	in := bufio.NewReader(r)
	var run []byte // of digits; one more than an id has is none
	for {
		c, err := in.ReadByte()
		if err == nil && (c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			if len(run) <= digits {
				run = append(run, c)
			}
			continue
		}
		var h gitfmt.Hash
		if len(run) == digits {
			if _, err := hex.Decode(h[:], run); err == nil && !h.IsZero() {
				named[h] = true
			}
		}
		if run = run[:0]; err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// indexIDs takes each place in an index that holds the bytes of an id of an object in a
// pack, whatever the index's version and extensions are.
func indexIDs(s *objects.Store, r io.Reader, named map[gitfmt.Hash]bool) error {
	data, err := io.ReadAll(r)
	for i := 0; i+len(gitfmt.Hash{}) <= len(data); i++ {
		if h := gitfmt.Hash(data[i:][:len(gitfmt.Hash{})]); !h.IsZero() && s.Packed(h) {
			named[h] = true
		}
	}
	return err
}

// keepUsers keeps what a user's git names beside refs, as far as it is there: an old
// line of a reflog may name what git itself has dropped.
func (g *collector) keepUsers(ctx context.Context) error {
	g.lax = true
	defer func() { g.lax = false }()
	return g.keep(ctx, g.users)
}

// passes reports whether an error is passed over.
func (g *collector) passes(err error) bool { return g.lax && errors.Is(err, gitfmt.ErrCorrupt) }
