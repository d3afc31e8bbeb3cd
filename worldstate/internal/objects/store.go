package objects

import (
	"bytes"
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

// Store is the objects in the bare repository's packs. In a store of ours loose objects,
// which only git itself makes, are the user's, and not read. Safe for concurrent use.
//
// A look-up costs the same however many packs there are: objects of small packs
// are in one map, and only packs of more than smallPack objects, of which
// consolidation leaves few, are asked one by one.
type Store struct {
	Dir       string
	Loose     bool // another program's repository: loose objects are read as well
	MaxPacks  int  // 0: the default; tests want less
	inflaters sync.Pool
	Buffers   sync.Pool    // of *[]byte
	mu        sync.RWMutex // guards what follows
	Packs     map[string]*Pack
	names     []string // of packs, sorted; nil: to be listed
	large     []*Pack  // the largest first
	small     map[gitfmt.Hash]place
	listed    fsys.Source // the directory that packs come and go in
	retired   []*Pack     // gone, but maybe still being read; closed when no operation runs

	damaged map[string]error      // packs that cannot be used, by the name of their index
	rotten  map[rottenObject]bool // objects found damaged where a pack lists them
}

type rottenObject struct {
	pack *Pack
	hash gitfmt.Hash
}

// Buffer returns one to copy with.
func (s *Store) Buffer() *[]byte {
	if b, ok := s.Buffers.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 64<<10)
	return &b
}

// place is where an object is.
type place struct {
	pack *Pack
	off  int64
}

// smallPack: the objects of packs up to this many are kept in the map.
const smallPack = 512

func New(dir string) *Store {
	return &Store{Dir: dir, Packs: make(map[string]*Pack), small: make(map[gitfmt.Hash]place), rotten: make(map[rottenObject]bool)}
}

func (s *Store) PackDir() string { return filepath.Join(s.Dir, "objects", "pack") }

var ErrNoObject = errors.New("not in the store")

// Open begins to read an object; nothing is verified yet. Another process may
// have put packs together since the last refresh: what is not where it was is
// looked for once more.
func (s *Store) Open(h gitfmt.Hash) (gitfmt.ObjectType, int64, io.ReadCloser, error) {
	t, size, r, err := s.openListed(h)
	if !errors.Is(err, ErrNoObject) && !errors.Is(err, os.ErrNotExist) {
		return t, size, r, err
	}
	s.mu.Lock()
	lerr := s.list()
	s.mu.Unlock()
	if fsys.Exhausted(lerr) {
		err = lerr
	}
	if lerr != nil {
		return 0, 0, nil, err
	}
	return s.openListed(h)
}

func (s *Store) openListed(h gitfmt.Hash) (gitfmt.ObjectType, int64, io.ReadCloser, error) {
	p, off := s.Lookup(h)
	if p == nil && s.Loose {
		return s.openLoose(h)
	}
	if p == nil {
		return 0, 0, nil, ErrNoObject
	}
	head, r, err := p.open(off, &s.inflaters)
	if err != nil || head.Kind < gitfmt.OffsetDelta {
		return head.Kind, head.Size, r, err
	}
	r.Close()
	t, data, err := s.undelta(p, off, 0, anyPack)
	return t, int64(len(data)), io.NopCloser(bytes.NewReader(data)), err
}

var errWrongHash = errors.New("its bytes do not have its hash")

// CopyTo writes an object's bytes to w and then says whether they were intact:
// on an error w holds rubbish. The error is a *MissingObjectError naming path,
// except when w itself failed.
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
	in := &failReader{r: io.LimitReader(r, size+1)}
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

// Read returns a whole, verified object, from whichever pack has it intact.
func (s *Store) Read(h gitfmt.Hash, want gitfmt.ObjectType, path string) ([]byte, error) {
	return s.ReadUpTo(h, want, path, gitfmt.MaxDeltaBytes)
}

var (
	ErrTooLarge  = errors.New("too large to be read at once")
	ErrWrongType = errors.New("another type of object")
)

// ReadUpTo is Read for objects of at most so many bytes; a larger one's error
// is ErrTooLarge.
func (s *Store) ReadUpTo(h gitfmt.Hash, want gitfmt.ObjectType, path string, most int64) (data []byte, err error) {
	return s.ReadInto(nil, h, want, path, most)
}

// ReadInto is ReadUpTo into buf, where the object finds room there.
func (s *Store) ReadInto(buf []byte, h gitfmt.Hash, want gitfmt.ObjectType, path string, most int64) (data []byte, err error) {
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
	if n, err := r.Read(buf[size : size+1]); n != 0 || err != io.EOF { // the end's checksum is looked at here
		return nil, missing(errWrongHash)
	}
	if gitfmt.HashObject(t, data) != h {
		return nil, missing(errWrongHash)
	}
	return data, nil
}

// Probe finds out whether an object can be had, at less cost than Check: the
// checksum that its pack's index holds of its bytes as stored must be right.
// What is stored as a difference is read and hashed.
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
		return s.Check(h, want, path) // a pack that went, a difference, or damage, of the checksum maybe: it says which
	}
	return nil
}

// Check reads an object to see that it is intact in some pack. After it CopyTo reads
// that copy.
func (s *Store) Check(h gitfmt.Hash, want gitfmt.ObjectType, path string) error {
	return s.Retry(h, func() error {
		_, err := s.CopyTo(h, want, path, io.Discard)
		return err
	})
}

// SizeBytes is what the packs take on disk, those still being written apart.
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
	s.Packs, s.names, s.large, s.small, s.retired, s.listed = map[string]*Pack{}, nil, nil, nil, nil, fsys.Source{}
}

// StoreFault marks an error of the store, which ends the scan, apart from one
// of the file, which is listed.
type StoreFault struct{ Err error }

func (e *StoreFault) Error() string { return e.Err.Error() }

func (e *StoreFault) Unwrap() error { return e.Err }

// WholeFileBytes: files up to it are read at once, larger ones streamed. With
// scanWorkers at work it bounds the memory for contents.
const WholeFileBytes = 512 << 10

// ErrFull: the store has reached Options.SizeLimitBytes; see LimitError.
var ErrFull = errors.New("store is full")

// A LimitError says that a save would have grown the store past its cap. The
// store is as it was.
type LimitError struct {
	Store      string
	LimitBytes int64
	NeedBytes  int64 // what the store would have held
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("store %s would grow to %d bytes, over its limit of %d; raise the limit or collect old snapshots", e.Store, e.NeedBytes, e.LimitBytes)
}

// Is makes errors.Is(err, ErrFull) true.
func (e *LimitError) Is(target error) bool { return target == ErrFull }

// Publish finishes a pack and lists it, unless the packs would take more than
// limitBytes; 0 means no limit.
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

// PackedSize is the length of a blob that is in a pack.
func (s *Store) PackedSize(h gitfmt.Hash) (int64, bool) {
	p, off := s.Lookup(h)
	if p == nil {
		return 0, false
	}
	size, err := p.objectSize(off, &s.inflaters)
	return size, err == nil
}

// Commit reads a snapshot's commit.
func (s *Store) Commit(h gitfmt.Hash) (*gitfmt.Commit, error) {
	data, err := s.Read(h, gitfmt.CommitObject, "snapshot")
	if err != nil {
		return nil, err
	}
	return gitfmt.DecodeCommit(h, data)
}

// Tree reads a git tree, which is at a path.
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
