package worldstate

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
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
	large     []*packFile // the largest first
	small     map[hash]place
	loose     bool // there are loose objects
	listed    dirStamp
	retired   []*packFile // gone, but maybe still being read; closed when no operation runs
	git       *filesystem.Storage
	lender    *objectStore // a person's repository that objects are borrowed from; nil mostly
	refs      refCache     // guarded by World.mu

	damaged map[string]error      // packs that cannot be used, by the name of their index
	rotten  map[rottenObject]bool // objects found damaged where a pack lists them
}

type rottenObject struct {
	pack *packFile
	hash hash
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
const smallPack = 4096

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
	if _, err := os.Stat(head); err == nil {
		return nil
	}
	for _, d := range []string{"objects/pack", "objects/info", "refs/heads", "refs/anamnesis", stateDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return fmt.Errorf("create store: %w", err)
		}
	}
	if err := writeFileDurably(filepath.Join(dir, "config"), []byte(repoConfig)); err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	if err := writeFileDurably(head, []byte("ref: "+latestRef+"\n")); err != nil {
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
	if _, err := os.Stat(filepath.Join(dir, stateDir)); err == nil {
		return nil
	}
	return fmt.Errorf("open store %s: %w: the directory holds something that is no store of this program; name an empty or new one", dir, ErrRefused)
}

func newObjectStore(dir string) *objectStore {
	return &objectStore{dir: dir, packs: make(map[string]*packFile), small: make(map[hash]place), rotten: make(map[rottenObject]bool)}
}

func (s *objectStore) packDir() string { return filepath.Join(s.dir, "objects", "pack") }

// dirStamp tells whether a directory's entries may have changed.
type dirStamp struct {
	mtime [2]time.Time
	at    time.Time
}

// stampDirs looks at the two directories objects come and go in.
func (s *objectStore) stampDirs() (dirStamp, error) {
	st := dirStamp{at: time.Now()}
	for i, d := range []string{s.packDir(), filepath.Join(s.dir, "objects")} {
		info, err := os.Stat(d)
		if err != nil {
			return st, fmt.Errorf("read store: %w", err)
		}
		st.mtime[i] = info.ModTime()
	}
	return st, nil
}

// holds reports whether what was listed at st is still all there is: nothing
// changed since, and the last change was not too young then for another one
// to show.
func (st dirStamp) holds(now dirStamp) bool {
	for i := range st.mtime {
		if !st.mtime[i].Equal(now.mtime[i]) || st.at.Sub(st.mtime[i]) < coarseSlack {
			return false
		}
	}
	return true
}

// refresh looks for packs that came or went. No other operation of the World
// runs.
func (s *objectStore) refresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.retired {
		p.close()
	}
	s.retired = nil
	now, err := s.stampDirs()
	if err != nil {
		return err
	}
	if !s.listed.holds(now) {
		if err := s.list(); err != nil {
			return err
		}
		s.listed = now
	}
	return s.followAlternates()
}

// list reads the directory of packs; s.mu is held for writing. A pack that is
// damaged counts as absent: a save writes what it held anew, as far as the
// world still has it, and what needs the rest is refused by name.
func (s *objectStore) list() error {
	s.git = nil
	s.loose = false
	dirs, err := os.ReadDir(filepath.Join(s.dir, "objects"))
	if err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	for _, d := range dirs {
		s.loose = s.loose || len(d.Name()) == 2
	}
	list, err := os.ReadDir(s.packDir())
	if err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	there := make(map[string]bool, len(list))
	s.damaged = make(map[string]error)
	var came []*packFile
	for _, e := range list {
		name := e.Name()
		if !strings.HasSuffix(name, ".idx") {
			continue
		}
		there[name] = true
		if s.packs[name] != nil {
			continue
		}
		p, err := openPack(filepath.Join(s.packDir(), name))
		if err != nil {
			s.damaged[name] = err
			continue
		}
		came = append(came, p)
	}
	s.drop(func(p *packFile) bool { return !there[p.name] })
	for _, p := range came {
		s.add(p)
	}
	return nil
}

// add takes a pack into the look-up; s.mu is held for writing.
func (s *objectStore) add(p *packFile) {
	s.packs[p.name] = p
	if p.n > smallPack {
		s.large = append(s.large, p)
		sort.Slice(s.large, func(i, j int) bool { return s.large[i].n > s.large[j].n })
		return
	}
	for i := range p.n {
		if it := p.item(i); !s.rotten[rottenObject{p, it.hash}] {
			s.small[it.hash] = place{p, it.off}
		}
	}
}

// condemn remembers that the copy of an object which lookup gives is damaged,
// and reports whether there is another one.
func (s *objectStore) condemn(h hash) bool {
	p, _ := s.lookup(h)
	if p == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rotten[rottenObject{p, h}] = true
	delete(s.small, h)
	for _, p := range s.packs {
		if off, ok := p.find(h); ok && !s.rotten[rottenObject{p, h}] {
			s.small[h] = place{p, off}
			return true
		}
	}
	return false
}

// hasIntact is owns for an object whose bytes are at hand: one that the store
// lists and that has rotted there counts as absent, so that it is written anew.
func (s *objectStore) hasIntact(h hash) bool {
	buf := s.buffer()
	defer s.buffers.Put(buf)
	for {
		p, _ := s.lookup(h)
		if p == nil {
			return s.looseHas(h) // what is borrowed is not ours: with the bytes at hand it becomes so
		}
		if i, ok := p.position(h); ok {
			if _, err := p.intact(p.item(i), nil, *buf); err == nil {
				return true
			}
		}
		s.condemn(h)
	}
}

// drop takes packs out of the look-up; s.mu is held for writing.
func (s *objectStore) drop(gone func(*packFile) bool) {
	before := len(s.packs)
	for name, p := range s.packs {
		if gone(p) {
			delete(s.packs, name)
			s.retired = append(s.retired, p)
		}
	}
	if len(s.packs) == before {
		return
	}
	rest := s.packs
	s.packs, s.large, s.small = make(map[string]*packFile, len(rest)), nil, make(map[hash]place)
	for _, p := range rest {
		s.add(p)
	}
}

// published takes a pack just written into the look-up.
func (s *objectStore) published(idxPath string) error {
	p, err := openPack(idxPath)
	if err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.packs[p.name] == nil {
		s.add(p)
	}
	return nil
}

// generation lists the packs, the stat cache's ground to trust that an object
// it names is stored.
func (s *objectStore) generation() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := make([]string, 0, len(s.packs))
	for name := range s.packs {
		names = append(names, name)
	}
	if s.lender != nil {
		names = append(names, s.lender.generation()...)
	}
	sort.Strings(names)
	return names
}

// lookup gives the pack that holds an object, nil when none does.
func (s *objectStore) lookup(h hash) (*packFile, int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if at, ok := s.small[h]; ok {
		return at.pack, at.off
	}
	for _, p := range s.large {
		if off, ok := p.find(h); ok && !s.rotten[rottenObject{p, h}] {
			return p, off
		}
	}
	return nil, 0
}

// otherwise does f, which reads an object, again for as long as it finds a
// damaged copy and there is another one.
func (s *objectStore) otherwise(h hash, f func() error) error {
	for {
		err := f()
		if !errors.Is(err, ErrCorrupt) || errors.Is(err, errTooLarge) || errors.Is(err, errWrongType) || !s.condemn(h) {
			return err
		}
	}
}

// has reports whether the store, or what it borrows from, lists the object; it
// does not read it.
func (s *objectStore) has(h hash) bool {
	if s.owns(h) {
		return true
	}
	lender := s.lending()
	return lender != nil && lender.packed(h) // what is loose there may not be durable
}

// owns reports whether the store itself lists an object.
func (s *objectStore) owns(h hash) bool { return s.packed(h) || s.looseHas(h) }

func (s *objectStore) packed(h hash) bool {
	p, _ := s.lookup(h)
	return p != nil
}

// looseHas reports whether git made a file of an object.
func (s *objectStore) looseHas(h hash) bool {
	s.mu.RLock()
	loose := s.loose
	s.mu.RUnlock()
	if !loose {
		return false
	}
	id := h.String()
	_, err := os.Stat(filepath.Join(s.dir, "objects", id[:2], id[2:]))
	return err == nil
}

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
func (s *objectStore) open(h hash) (objectType, int64, io.ReadCloser, error) {
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
	if lerr != nil {
		return 0, 0, nil, err
	}
	t, size, r, err = s.openListed(h)
	if lender != nil && errors.Is(err, errNoObject) {
		return lender.open(h) // it may be loose there by now, or in another pack
	}
	return t, size, r, err
}

func (s *objectStore) openListed(h hash) (objectType, int64, io.ReadCloser, error) {
	p, off := s.lookup(h)
	if p != nil {
		head, r, err := p.open(off, &s.inflaters)
		if err != nil || head.kind < offsetDelta {
			return head.kind, head.size, r, err
		}
		r.Close()
		t, data, err := s.undelta(p, off, 0)
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
	return objectType(obj.Type()), obj.Size(), r, nil
}

var errWrongHash = errors.New("its bytes do not have its hash")

// copyTo writes an object's bytes to w and then says whether they were intact:
// on an error w holds rubbish. The error is a *MissingObjectError naming path,
// except when w itself failed.
func (s *objectStore) copyTo(h hash, want objectType, path string, w io.Writer) (int64, error) {
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
	fmt.Fprintf(sum, "%s %d\x00", t, size)
	tee := &failWriter{w: w}
	n, err := io.Copy(io.MultiWriter(sum, tee), io.LimitReader(r, size+1))
	switch {
	case tee.err != nil:
		return n, tee.err
	case err != nil:
		return n, missing(err)
	case n != size || hash(sum.Sum(nil)) != h:
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
func (s *objectStore) read(h hash, want objectType, path string) ([]byte, error) {
	return s.readUpTo(h, want, path, maxDeltaBytes)
}

var (
	errTooLarge  = errors.New("too large to be read at once")
	errWrongType = errors.New("another type of object")
)

// readUpTo is read for objects of at most so many bytes; a larger one's error
// is errTooLarge.
func (s *objectStore) readUpTo(h hash, want objectType, path string, most int64) (data []byte, err error) {
	err = s.otherwise(h, func() error {
		data, err = s.readOnce(h, want, path, most)
		return err
	})
	return data, err
}

func (s *objectStore) readOnce(h hash, want objectType, path string, most int64) ([]byte, error) {
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
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, missing(err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF { // the end's checksum is looked at here
		return nil, missing(errWrongHash)
	}
	if hashObject(t, data) != h {
		return nil, missing(errWrongHash)
	}
	return data, nil
}

// probe finds out whether an object can be had, at less cost than check: the
// checksum that its pack's index holds of its bytes as stored must be right.
// What stands as a difference, or loose, is read and hashed.
func (s *objectStore) probe(h hash, want objectType, path string) error {
	return s.otherwise(h, func() error { return s.probeOnce(h, want, path) })
}

func (s *objectStore) probeOnce(h hash, want objectType, path string) error {
	p, _ := s.lookup(h)
	if p == nil {
		return s.check(h, want, path)
	}
	buf := s.buffer()
	defer s.buffers.Put(buf)
	i, _ := p.position(h)
	kind, err := p.intact(p.item(i), nil, *buf)
	switch {
	case errors.Is(err, errChecksum):
		return &MissingObjectError{Object: h.String(), Path: path, Err: err}
	case err != nil || kind != want:
		return s.check(h, want, path) // a pack that went, a difference, or damage: it says which
	}
	return nil
}

// check reads an object for nothing but its being intact in some pack. After
// it copyTo reads that copy.
func (s *objectStore) check(h hash, want objectType, path string) error {
	return s.otherwise(h, func() error {
		_, err := s.copyTo(h, want, path, io.Discard)
		return err
	})
}

// sizeBytes is what the packs take on disk.
func (s *objectStore) sizeBytes() (int64, error) {
	list, err := os.ReadDir(s.packDir())
	if err != nil {
		return 0, fmt.Errorf("read store: %w", err)
	}
	var total int64
	for _, e := range list {
		if info, err := e.Info(); err == nil {
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
	s.packs, s.large, s.small, s.retired, s.listed = map[string]*packFile{}, nil, nil, nil, dirStamp{}
}
