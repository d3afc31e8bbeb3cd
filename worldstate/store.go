package worldstate

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

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/refs"
)

// objectStore is the bare repository's objects. Packs are read directly, loose
// objects (which only git itself makes) through go-git, one at a time. Safe
// for concurrent use.
//
// A look-up costs the same however many packs there are: objects of small packs
// stand in one map, and only packs of more than smallPack objects, of which
// consolidation leaves few, are asked one by one.
type objectStore struct {
	dir       string
	maxPacks  int // 0: the default; tests want less
	inflaters sync.Pool
	buffers   sync.Pool    // of *[]byte
	mu        sync.RWMutex // guards what follows and, held for writing, every call of git
	packs     map[string]*packFile
	names     []string    // of packs, sorted; nil: to be listed
	large     []*packFile // the largest first
	small     map[gitfmt.Hash]place
	loose     bool // there are loose objects
	listed    dirStamp
	retired   []*packFile // gone, but maybe still being read; closed when no operation runs
	git       *filesystem.Storage
	lender    *objectStore // a person's repository that objects are borrowed from; nil mostly
	marked    bool         // packs of ours have their .keep; see markPacks

	damaged map[string]error      // packs that cannot be used, by the name of their index
	rotten  map[rottenObject]bool // objects found damaged where a pack lists them
}

type rottenObject struct {
	pack *packFile
	hash gitfmt.Hash
}

// buffer gives one to copy with.
func (s *objectStore) buffer() *[]byte {
	if b, ok := s.buffers.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 64<<10)
	return &b
}

// place is where an object stands.
type place struct {
	pack *packFile
	off  int64
}

// smallPack: the objects of packs up to this many are kept in the map.
const smallPack = 512

// largeObjectBytes: above it go-git streams instead of holding an object.
const largeObjectBytes = 4 << 20

// repoConfig is the bare repository's configuration. Automatic maintenance is
// off: nothing repacks behind a restore's back.
const repoConfig = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
	logallrefupdates = false
[gc]
	auto = 0
[maintenance]
	auto = false
`

// createStore makes the bare repository where there is none. It is repeatable:
// HEAD, which makes git see a repository, is written last.
func createStore(dir string) error {
	head := filepath.Join(dir, "HEAD")
	if there, err := fsys.Exists(head); there || err != nil {
		return err
	}
	for _, d := range []string{"objects/pack", "objects/info", "refs/heads", "refs/anamnesis", fsys.StateDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return fmt.Errorf("create store: %w", err)
		}
	}
	if err := fsys.WriteFileDurably(filepath.Join(dir, "config"), []byte(repoConfig)); err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	if err := fsys.WriteFileDurably(filepath.Join(dir, fsys.StateDir, formatName), []byte(formatText)); err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	if err := fsys.WriteFileDurably(head, []byte("ref: "+refs.Latest+"\n")); err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	return nil
}

// checkStoreDir refuses to make a store of a directory that holds other things.
func checkStoreDir(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(list) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	there, err := fsys.Exists(filepath.Join(dir, fsys.StateDir))
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if there {
		return nil
	}
	return fmt.Errorf("open store %s: %w: the directory holds something that is no store of this program; name an empty or new one", dir, ErrRefused)
}

func newObjectStore(dir string) *objectStore {
	return &objectStore{dir: dir, packs: make(map[string]*packFile), small: make(map[gitfmt.Hash]place), rotten: make(map[rottenObject]bool)}
}

func (s *objectStore) packDir() string { return filepath.Join(s.dir, "objects", "pack") }

// gitStorage is go-git's view of the same repository; s.mu is held.
func (s *objectStore) gitStorage() *filesystem.Storage {
	if s.git == nil {
		s.git = filesystem.NewStorageWithOptions(osfs.New(s.dir), cache.NewObjectLRU(cache.MiByte),
			filesystem.Options{LargeObjectThreshold: largeObjectBytes})
	}
	return s.git
}

var errNoObject = errors.New("not in the store")

// open begins to read an object; nothing is verified yet. Another process may
// have put packs together since the last refresh: what is not where it was is
// looked for once more.
func (s *objectStore) open(h gitfmt.Hash) (gitfmt.ObjectType, int64, io.ReadCloser, error) {
	t, size, r, err := s.openListed(h)
	if !errors.Is(err, errNoObject) && !errors.Is(err, os.ErrNotExist) {
		return t, size, r, err
	}
	lender := s.lending()
	if lender != nil && lender.packed(h) {
		return lender.open(h)
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
	t, size, r, err = s.openListed(h)
	if lender != nil && errors.Is(err, errNoObject) {
		return lender.open(h) // it may be loose there by now, or in another pack
	}
	return t, size, r, err
}

func (s *objectStore) openListed(h gitfmt.Hash) (gitfmt.ObjectType, int64, io.ReadCloser, error) {
	p, off := s.lookup(h)
	if p != nil {
		head, r, err := p.open(off, &s.inflaters)
		if err != nil || head.Kind < gitfmt.OffsetDelta {
			return head.Kind, head.Size, r, err
		}
		r.Close()
		t, data, err := s.undelta(p, off, 0, false)
		return t, int64(len(data)), io.NopCloser(bytes.NewReader(data)), err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.loose {
		return 0, 0, nil, errNoObject
	}
	obj, err := s.gitStorage().EncodedObject(plumbing.AnyObject, plumbing.Hash(h))
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return 0, 0, nil, errNoObject
	}
	if err != nil {
		return 0, 0, nil, err
	}
	r, err := obj.Reader()
	if err != nil {
		return 0, 0, nil, err
	}
	return gitfmt.ObjectType(obj.Type()), obj.Size(), r, nil
}

var errWrongHash = errors.New("its bytes do not have its hash")

// copyTo writes an object's bytes to w and then says whether they were intact:
// on an error w holds rubbish. The error is a *MissingObjectError naming path,
// except when w itself failed.
func (s *objectStore) copyTo(h gitfmt.Hash, want gitfmt.ObjectType, path string, w io.Writer) (int64, error) {
	missing := func(err error) error { return &MissingObjectError{Object: h.String(), Path: path, Err: err} }
	t, size, r, err := s.open(h)
	if err != nil {
		return 0, missing(err)
	}
	defer r.Close()
	if t != want {
		return 0, missing(fmt.Errorf("%w: it is a %s, not a %s", errWrongType, t, want))
	}
	sum := sha1.New()
	sum.Write(gitfmt.AppendHead(nil, t, size))
	tee := &failWriter{w: w}
	n, err := io.Copy(io.MultiWriter(sum, tee), io.LimitReader(r, size+1))
	switch {
	case tee.err != nil:
		return n, tee.err
	case err != nil:
		return n, missing(err)
	case n != size || gitfmt.Hash(sum.Sum(nil)) != h:
		return n, missing(errWrongHash)
	}
	return n, nil
}

// failWriter tells a reader's failure from the writer's.
type failWriter struct {
	w   io.Writer
	err error
}

func (f *failWriter) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	f.err = err
	return n, err
}

// read gives a whole, verified object, from whichever pack has it intact.
func (s *objectStore) read(h gitfmt.Hash, want gitfmt.ObjectType, path string) ([]byte, error) {
	return s.readUpTo(h, want, path, gitfmt.MaxDeltaBytes)
}

var (
	errTooLarge  = errors.New("too large to be read at once")
	errWrongType = errors.New("another type of object")
)

// readUpTo is read for objects of at most so many bytes; a larger one's error
// is errTooLarge.
func (s *objectStore) readUpTo(h gitfmt.Hash, want gitfmt.ObjectType, path string, most int64) (data []byte, err error) {
	return s.readInto(nil, h, want, path, most)
}

// readInto is readUpTo into buf, where the object finds room there.
func (s *objectStore) readInto(buf []byte, h gitfmt.Hash, want gitfmt.ObjectType, path string, most int64) (data []byte, err error) {
	err = s.otherwise(h, func() error {
		data, err = s.readOnce(buf, h, want, path, most)
		return err
	})
	return data, err
}

func (s *objectStore) readOnce(buf []byte, h gitfmt.Hash, want gitfmt.ObjectType, path string, most int64) ([]byte, error) {
	missing := func(err error) error { return &MissingObjectError{Object: h.String(), Path: path, Err: err} }
	t, size, r, err := s.open(h)
	if err != nil {
		return nil, missing(err)
	}
	defer r.Close()
	switch {
	case t != want:
		return nil, missing(fmt.Errorf("%w: it is a %s, not a %s", errWrongType, t, want))
	case size > most:
		return nil, missing(errTooLarge)
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

// probe finds out whether an object can be had, at less cost than check: the
// checksum that its pack's index holds of its bytes as stored must be right.
// What stands as a difference, or loose, is read and hashed.
func (s *objectStore) probe(h gitfmt.Hash, want gitfmt.ObjectType, path string) error {
	return s.otherwise(h, func() error { return s.probeOnce(h, want, path) })
}

func (s *objectStore) probeOnce(h gitfmt.Hash, want gitfmt.ObjectType, path string) error {
	p, it := s.locate(h)
	if p == nil {
		return s.check(h, want, path)
	}
	buf := s.buffer()
	defer s.buffers.Put(buf)
	if kind, err := p.intact(it, nil, *buf); err != nil || kind != want {
		return s.check(h, want, path) // a pack that went, a difference, or damage, of the checksum maybe: it says which
	}
	return nil
}

// check reads an object for nothing but its being intact in some pack. After
// it copyTo reads that copy.
func (s *objectStore) check(h gitfmt.Hash, want gitfmt.ObjectType, path string) error {
	return s.otherwise(h, func() error {
		_, err := s.copyTo(h, want, path, io.Discard)
		return err
	})
}

// sizeBytes is what the packs take on disk, those still being written apart.
func (s *objectStore) sizeBytes() (int64, error) {
	list, err := os.ReadDir(s.packDir())
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

func (s *objectStore) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.packs {
		p.close()
	}
	for _, p := range s.retired {
		p.close()
	}
	if s.lender != nil {
		s.lender.close()
		s.lender = nil
	}
	s.packs, s.names, s.large, s.small, s.retired, s.listed = map[string]*packFile{}, nil, nil, nil, nil, dirStamp{}
}
