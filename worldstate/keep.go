package worldstate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// A pack of ours has a .keep beside it that holds one word. git gc and git repack
// leave a pack with a .keep alone; consolidations and collections change packs with
// this .keep and nothing else: what a user pushed, fetched, repacked or keeps for
// reasons of their own stays as it is, and so do loose objects.

const (
	keepExt  = ".keep"
	keepWord = "anamnesis"
	// formatName is the file in stateDir that says how the store is laid out. In a
	// store without it, packs of ours may have no .keep.
	formatName = "format"
	formatText = "2\n"
)

func (s *objectStore) formatPath() string { return filepath.Join(s.dir, fsys.StateDir, formatName) }

func (p *packFile) beside(ext string) string { return strings.TrimSuffix(p.path, ".pack") + ext }

// isOurKeep reports whether a .keep is there and is that of a pack of ours.
func isOurKeep(path string) (bool, error) {
	var data []byte
	f, err := fsys.OpenFile(path)
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(f, 2*int64(len(keepWord))))
		f.Close()
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || fsys.IsErrno(err, unix.EISDIR) { // another user's git push writes its own
		return false, nil
	}
	return string(bytes.TrimSpace(data)) == keepWord, err
}

// ourPacks gives the packs of ours, the smallest first; in a store from before packs had
// a .keep, those that markPacks would mark.
func (s *objectStore) ourPacks() ([]*packFile, error) {
	marked := s.marked
	if !marked {
		var err error
		if marked, err = fsys.Exists(s.formatPath()); err != nil {
			return nil, err
		}
	}
	s.mu.RLock()
	all := make([]*packFile, 0, len(s.packs))
	for _, p := range s.packs {
		all = append(all, p)
	}
	s.mu.RUnlock()
	var out []*packFile
	for _, p := range all {
		ours, err := isOurKeep(p.beside(keepExt))
		if err == nil && !ours && !marked {
			ours, err = p.unmarked()
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read store: %w", err)
		}
		if !ours {
			continue
		}
		_, err = p.size()
		if errors.Is(err, os.ErrNotExist) { // somebody removed it, and its index before it
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("size of pack: %w", err)
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *packFile) int {
		if a.bytes != b.bytes {
			return int(max(min(a.bytes-b.bytes, 1), -1))
		}
		return strings.Compare(a.name, b.name)
	})
	return out, nil
}

// markPacks gives the packs of ours their .keep in a store from before these were
// written, once. Which packs those are is told by what only git does: it makes its
// packs read-only, writes differences by offset, and puts further files beside them.
// One that is not recognised stays as it is. The store's lock is held.
func (s *objectStore) markPacks() error {
	if s.marked {
		return nil
	}
	if there, err := fsys.Exists(s.formatPath()); there || err != nil {
		s.marked = there
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.packs {
		ours, err := p.unmarked()
		if err == nil && ours {
			err = fsys.WriteFileDurably(p.beside(keepExt), []byte(keepWord+"\n"))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a user's git gc may remove it
			return fmt.Errorf("mark packs: %w", err)
		}
	}
	if err := fsys.WriteFileDurably(s.formatPath(), []byte(formatText)); err != nil {
		return err
	}
	s.marked = true
	return nil
}

// unmarked reports whether a pack is ours by its looks, and has no .keep.
func (p *packFile) unmarked() (bool, error) {
	for _, ext := range []string{keepExt, ".rev", ".bitmap", ".mtimes", ".promisor"} {
		if there, err := fsys.Exists(p.beside(ext)); there || err != nil {
			return false, err
		}
	}
	for _, ext := range []string{".pack", ".idx"} {
		info, err := os.Stat(p.beside(ext))
		if err != nil || info.Mode().Perm()&0o200 == 0 {
			return false, err
		}
	}
	for i := range p.n {
		off, err := p.offset(i)
		if err != nil {
			return false, err
		}
		if kind, err := p.kindAt(off); err != nil || kind == gitfmt.OffsetDelta {
			return false, err
		}
	}
	return true, nil
}

// copies reports whether all objects of a pack can be copied one by one into another
// pack: none is a difference by offset, and what each difference starts from is in
// the pack as well.
func (p *packFile) copies(items []packEntry) (bool, error) {
	f, err := p.file()
	if err != nil {
		return false, err
	}
	for _, it := range items {
		kind, err := p.kindAt(it.Off)
		if err != nil || kind == gitfmt.OffsetDelta {
			return false, err
		}
		if kind != gitfmt.RefDelta {
			continue
		}
		h, err := gitfmt.ReadHeader(bufio.NewReaderSize(io.NewSectionReader(f, it.Off, 64), 64))
		if err != nil {
			return false, fmt.Errorf("read %s at %d: %w", p.path, it.Off, err)
		}
		if _, ok := p.find(h.Base); !ok {
			return false, nil
		}
	}
	return true, nil
}
