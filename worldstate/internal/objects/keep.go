package objects

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// Each of our packs has a .keep beside it that holds one word. git gc and git repack
// leave a pack with a .keep alone; consolidations and collections change packs with
// this .keep and nothing else: what a user pushed, fetched, repacked or keeps for
// reasons of their own stays as it is, and so do loose objects.

const (
	KeepExt  = ".keep"
	KeepWord = "anamnesis"
)

// keepFormat is the first format of stores in which each of our packs has a .keep.
const keepFormat = 2

func (p *Pack) Beside(ext string) string { return strings.TrimSuffix(p.Path, ".pack") + ext }

// IsOurKeep reports whether a .keep is there and is that of one of our packs.
func IsOurKeep(path string) (bool, error) {
	var data []byte
	f, err := fsys.OpenFile(path)
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(f, 2*int64(len(KeepWord))))
		f.Close()
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || fsys.IsErrno(err, unix.EISDIR) { // another user's git push writes its own
		return false, nil
	}
	return string(bytes.TrimSpace(data)) == KeepWord, err
}

// OurPacks returns our packs, the smallest first; in a store from before packs had
// a .keep, those that markPacks would mark.
func (s *Store) OurPacks() ([]*Pack, error) {
	marked := s.marked
	if !marked {
		format, err := fsys.ReadFormat(s.Dir)
		if err != nil {
			return nil, err
		}
		marked = format >= keepFormat
	}
	s.mu.RLock()
	all := make([]*Pack, 0, len(s.Packs))
	for _, p := range s.Packs {
		all = append(all, p)
	}
	s.mu.RUnlock()
	var out []*Pack
	for _, p := range all {
		ours, err := IsOurKeep(p.Beside(KeepExt))
		if err == nil && !ours && !marked {
			ours, err = p.unmarked()
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read store: %w", err)
		}
		if !ours {
			continue
		}
		_, err = p.Size()
		if errors.Is(err, os.ErrNotExist) { // it was removed, and its index before it
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("size of pack: %w", err)
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *Pack) int {
		if a.bytes != b.bytes {
			return int(max(min(a.bytes-b.bytes, 1), -1))
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

// MarkPacks adds a .keep to each of our packs in a store from before these were
// written, once. Which packs those are follows from what only git does: it makes its
// packs read-only, writes differences by offset, and puts further files beside them.
// One that is not recognised stays as it is. The store's lock is held.
func (s *Store) MarkPacks() error {
	if s.marked {
		return nil
	}
	if format, err := fsys.ReadFormat(s.Dir); format >= keepFormat || err != nil {
		s.marked = err == nil
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.Packs {
		ours, err := p.unmarked()
		if err == nil && ours {
			err = fsys.WriteFileDurably(p.Beside(KeepExt), []byte(KeepWord+"\n"))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a user's git gc may remove it
			return fmt.Errorf("mark packs: %w", err)
		}
	}
	err := fsys.WriteFormat(s.Dir, keepFormat)
	s.marked = err == nil
	return err
}

// unmarked reports whether a pack is ours by its looks, and has no .keep.
func (p *Pack) unmarked() (bool, error) {
	for _, ext := range []string{KeepExt, ".rev", ".bitmap", ".mtimes", ".promisor"} {
		if there, err := fsys.Exists(p.Beside(ext)); there || err != nil {
			return false, err
		}
	}
	for _, ext := range []string{".pack", ".idx"} {
		info, err := os.Stat(p.Beside(ext))
		if err != nil || info.Mode().Perm()&0o200 == 0 {
			return false, err
		}
	}
	for i := range p.N {
		off, err := p.Offset(i)
		if err != nil {
			return false, err
		}
		if kind, err := p.KindAt(off); err != nil || kind == gitfmt.OffsetDelta {
			return false, err
		}
	}
	return true, nil
}

// copies reports whether all objects of a pack can be copied one by one into another
// pack: none is a difference by offset, and what each difference starts from is in
// the pack as well.
func (p *Pack) copies(items []Entry) (bool, error) {
	f, err := p.file()
	if err != nil {
		return false, err
	}
	for _, it := range items {
		kind, err := p.KindAt(it.Off)
		if err != nil || kind == gitfmt.OffsetDelta {
			return false, err
		}
		if kind != gitfmt.RefDelta {
			continue
		}
		h, err := gitfmt.ReadHeader(bufio.NewReaderSize(io.NewSectionReader(f, it.Off, 64), 64))
		if err != nil {
			return false, fmt.Errorf("read %s at %d: %w", p.Path, it.Off, err)
		}
		if _, ok := p.Find(h.Base); !ok {
			return false, nil
		}
	}
	return true, nil
}
