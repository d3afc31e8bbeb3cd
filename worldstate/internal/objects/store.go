// Package objects stores git objects in packs: writing a pack, looking objects up, reading and
// checking them, and merging small packs.
package objects

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// Store holds the objects in the packs of a bare repository. Loose objects are the user's, since
// only git writes them, and are not read. Safe for concurrent use.
//
// A lookup searches the packs one by one, the largest first, which holds most objects. Merging
// bounds their number.
type Store struct {
	Dir       string
	packs     string // of PackDir, if it is not the repository's
	MaxPacks  int    // above which Consolidate merges
	inflaters sync.Pool
	Buffers   sync.Pool    // of *[]byte
	mu        sync.RWMutex // guards what follows
	Packs     map[string]*Pack
	names     []string    // of Packs, sorted; nil if they must be listed again
	bySize    []*Pack     // the one with the most objects first
	listed    fsys.Source // the packs' directory
	retired   []*Pack     // removed, but perhaps being read; closed when no operation runs
	alternate *Store      // a user's repository that an early version left objects in, or nil

	damaged       map[string]error    // packs that cannot be used, by the name of their index
	damagedCopies map[objectCopy]bool // damaged copies of objects
}

type objectCopy struct {
	pack *Pack
	hash gitfmt.Hash
}

// Buffer returns a buffer to copy with; the caller puts it back into Buffers.
func (s *Store) Buffer() *[]byte {
	if b, ok := s.Buffers.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 64<<10)
	return &b
}

func New(dir string) *Store {
	return &Store{Dir: dir, MaxPacks: maxPacks, Packs: make(map[string]*Pack), damagedCopies: make(map[objectCopy]bool)}
}

func (s *Store) PackDir() string { return cmp.Or(s.packs, filepath.Join(s.Dir, "objects", "pack")) }

var ErrNoObject = errors.New("not in the store")

// Open starts to read an object without verifying it. Another process may have merged packs
// since the last Refresh, so that an object that is not found is looked up once more.
func (s *Store) Open(h gitfmt.Hash) (gitfmt.ObjectType, int64, io.ReadCloser, error) {
	t, size, r, err := s.openListed(h)
	if !errors.Is(err, ErrNoObject) {
		return t, size, r, err
	}
	s.mu.Lock()
	lerr, alternate := s.list(), s.alternate
	s.mu.Unlock()
	if fsys.Exhausted(lerr) {
		err = lerr
	}
	if lerr != nil {
		return 0, 0, nil, err
	}
	t, size, r, err = s.openListed(h)
	if alternate != nil && errors.Is(err, ErrNoObject) {
		return alternate.Open(h)
	}
	return t, size, r, err
}

func (s *Store) openListed(h gitfmt.Hash) (gitfmt.ObjectType, int64, io.ReadCloser, error) {
	p, off := s.Lookup(h)
	if p == nil {
		return 0, 0, nil, ErrNoObject
	}
	return s.openIn(p, off)
}

// openIn starts to read the object at an offset of a pack.
func (s *Store) openIn(p *Pack, off int64) (gitfmt.ObjectType, int64, io.ReadCloser, error) {
	head, r, err := p.open(off, &s.inflaters)
	if err != nil || head.Kind < gitfmt.OffsetDelta {
		return head.Kind, head.Size, r, err
	}
	r.Close()
	t, data, err := s.undelta(p, off, 0)
	return t, int64(len(data)), io.NopCloser(bytes.NewReader(data)), err
}

var errWrongHash = errors.New("its bytes do not have its hash")

// CopyTo writes an object's bytes to w and then verifies them: after an error, w holds invalid
// data. The error is a *MissingObjectError naming path, unless w itself failed.
func (s *Store) CopyTo(h gitfmt.Hash, want gitfmt.ObjectType, path string, w io.Writer) (int64, error) {
	missing := func(err error) error { return &gitfmt.MissingObjectError{Object: h.String(), Path: path, Err: err} }
	t, size, r, err := s.Open(h)
	if err != nil {
		return 0, missing(err)
	}
	defer r.Close()
	if t != want {
		return 0, missing(fmt.Errorf("%w: it is a %s, not a %s", ErrWrongType, t, want))
	}
	sum := sha1.New()
	sum.Write(gitfmt.AppendHead(nil, t, size))
	in := &failReader{r: io.LimitReader(r, size+1)} // one byte more shows an object that is too long
	n, err := io.Copy(io.MultiWriter(sum, w), in)
	switch {
	case in.err != nil:
		return n, missing(in.err)
	case err != nil:
		return n, err
	case n != size || gitfmt.Hash(sum.Sum(nil)) != h:
		return n, missing(errWrongHash)
	}
	return n, nil
}

// Read returns a whole, verified object from any pack that holds an intact copy.
func (s *Store) Read(h gitfmt.Hash, want gitfmt.ObjectType, path string) ([]byte, error) {
	return s.ReadUpTo(h, want, path, gitfmt.MaxDeltaBytes)
}

var (
	ErrTooLarge  = errors.New("too large to be read at once")
	ErrWrongType = errors.New("another type of object")
)

// ReadUpTo is Read for objects of at most the given size; the error for a larger one is
// ErrTooLarge.
func (s *Store) ReadUpTo(h gitfmt.Hash, want gitfmt.ObjectType, path string, most int64) (data []byte, err error) {
	return s.ReadInto(nil, h, want, path, most)
}

// ReadInto is ReadUpTo into buf, if the object fits there.
func (s *Store) ReadInto(buf []byte, h gitfmt.Hash, want gitfmt.ObjectType, path string, most int64) (
	data []byte, err error,
) {
	err = s.Retry(h, func() error {
		data, err = s.readOnce(buf, h, want, path, most)
		return err
	})
	return data, err
}

func (s *Store) readOnce(buf []byte, h gitfmt.Hash, want gitfmt.ObjectType, path string, most int64) ([]byte, error) {
	missing := func(err error) error { return &gitfmt.MissingObjectError{Object: h.String(), Path: path, Err: err} }
	t, size, r, err := s.Open(h)
	if err != nil {
		return nil, missing(err)
	}
	defer r.Close()
	switch {
	case t != want:
		return nil, missing(fmt.Errorf("%w: it is a %s, not a %s", ErrWrongType, t, want))
	case size > most:
		return nil, missing(ErrTooLarge)
	}
	if size >= int64(len(buf)) {
		buf = make([]byte, size+1)
	}
	data := buf[:size]
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, missing(err)
	}
	if n, err := r.Read(buf[size : size+1]); n != 0 || err != io.EOF { // this read verifies the stream's checksum
		return nil, missing(errWrongHash)
	}
	if gitfmt.HashObject(t, data) != h {
		return nil, missing(errWrongHash)
	}
	return data, nil
}

// Probe checks at less cost than Check that an object can be read: the bytes as stored must
// have the checksum in the pack's index. An object stored as a delta is read and hashed.
func (s *Store) Probe(h gitfmt.Hash, want gitfmt.ObjectType, path string) error {
	return s.Retry(h, func() error { return s.probeOnce(h, want, path) })
}

func (s *Store) probeOnce(h gitfmt.Hash, want gitfmt.ObjectType, path string) error {
	p, it := s.Locate(h)
	if p == nil {
		return s.Check(h, want, path)
	}
	buf := s.Buffer()
	defer s.Buffers.Put(buf)
	if kind, err := p.Intact(it, nil, *buf); err != nil || kind != want {
		return s.Check(h, want, path) // the object is a delta, or it is damaged: Check finds out
	}
	return nil
}

// Check verifies that some pack holds an intact copy. A CopyTo after it reads that copy.
func (s *Store) Check(h gitfmt.Hash, want gitfmt.ObjectType, path string) error {
	return s.Retry(h, func() error {
		_, err := s.CopyTo(h, want, path, io.Discard)
		return err
	})
}

// SizeBytes returns the size of the packs on disk, without those being written.
func (s *Store) SizeBytes() (int64, error) {
	list, err := os.ReadDir(s.PackDir())
	if err != nil {
		return 0, fmt.Errorf("read store: %w", err)
	}
	var total int64
	for _, e := range list {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), "pack-") {
			total += info.Size()
		}
	}
	return total, nil
}

func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.Packs {
		p.Close()
	}
	for _, p := range s.retired {
		p.Close()
	}
	if s.alternate != nil {
		s.alternate.Close()
		s.alternate = nil
	}
	s.Packs, s.names, s.bySize, s.retired, s.listed = map[string]*Pack{}, nil, nil, nil, fsys.Source{}
}

// StoreFault is an error of the store, which ends a scan; an error of a file is only listed.
type StoreFault struct{ Err error }

func (e *StoreFault) Error() string { return e.Err.Error() }

func (e *StoreFault) Unwrap() error { return e.Err }

// WholeFileBytes is the largest file that is read at once; larger ones are streamed. Together
// with the number of workers it bounds the memory for contents.
const WholeFileBytes = 512 << 10

// ErrFull: the store has reached Options.SizeLimitBytes; see LimitError.
var ErrFull = errors.New("store is full")

// A LimitError reports that a save would have grown the store past its limit. The store is
// unchanged.
type LimitError struct {
	Store      string
	LimitBytes int64
	NeedBytes  int64 // the size that the store would have had
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("store %s would grow to %d bytes, over its limit of %d; "+
		"raise the limit or collect old snapshots", e.Store, e.NeedBytes, e.LimitBytes)
}

// Is makes errors.Is(err, ErrFull) true.
func (e *LimitError) Is(target error) bool { return target == ErrFull }

// Publish finishes a pack and adds it to the lookup, unless the packs would exceed limitBytes;
// 0 means no limit.
func (s *Store) Publish(pack *Writer, limitBytes int64) error {
	if limitBytes > 0 {
		have, err := s.SizeBytes()
		if err != nil {
			return err
		}
		if n := pack.size(); n > 0 && have+n > limitBytes {
			return &LimitError{Store: s.Dir, LimitBytes: limitBytes, NeedBytes: have + n}
		}
	}
	idx, err := pack.Finish()
	if err != nil || idx == "" {
		return err
	}
	return s.Published(idx)
}

// Commit reads and decodes a commit.
func (s *Store) Commit(h gitfmt.Hash) (*gitfmt.Commit, error) {
	data, err := s.Read(h, gitfmt.CommitObject, "snapshot")
	if err != nil {
		return nil, err
	}
	return gitfmt.DecodeCommit(h, data)
}

// Tree reads and decodes the git tree at a path.
func (s *Store) Tree(h gitfmt.Hash, path string) ([]gitfmt.TreeItem, error) {
	data, err := s.Read(h, gitfmt.TreeObject, path)
	if err != nil {
		return nil, err
	}
	items, err := gitfmt.DecodeTree(data)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w: %w", h, gitfmt.ErrCorrupt, err)
	}
	return items, nil
}
