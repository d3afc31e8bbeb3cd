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

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// objectStore is the bare repository's objects. Packs of ours are read
// directly (they hold no deltas); what git itself made of them since is read
// through go-git, one object at a time. Safe for concurrent use.
type objectStore struct {
	dir   string
	mu    sync.Mutex // guards packs and, around every call, git
	packs map[string]*packFile
	order []*packFile
	git   *filesystem.Storage
}

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
	return &objectStore{dir: dir, packs: make(map[string]*packFile)}
}

func (s *objectStore) packDir() string { return filepath.Join(s.dir, "objects", "pack") }

// refresh looks for packs that came or went.
func (s *objectStore) refresh() error {
	list, err := os.ReadDir(s.packDir())
	if err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := make(map[string]*packFile)
	var bad error
	for _, e := range list {
		name := e.Name()
		if !strings.HasSuffix(name, ".idx") {
			continue
		}
		p := s.packs[name]
		if p == nil {
			if p, err = openPack(filepath.Join(s.packDir(), name)); err != nil {
				if !errors.Is(err, os.ErrNotExist) {
					bad = fmt.Errorf("read store: %w: %w", ErrCorrupt, err)
				}
				continue
			}
		}
		now[name] = p
	}
	for name, p := range s.packs {
		if now[name] == nil {
			p.close()
		}
	}
	s.packs = now
	s.order = s.order[:0]
	for _, p := range now {
		s.order = append(s.order, p)
	}
	sort.Slice(s.order, func(i, j int) bool { return s.order[i].n > s.order[j].n })
	s.git = nil
	return bad
}

// generation lists the packs, the stat cache's ground to trust that an object
// it names is stored.
func (s *objectStore) generation() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.packs))
	for name := range s.packs {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (s *objectStore) lookup(h hash) (*packFile, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.order {
		if off, ok := p.find(h); ok {
			return p, off
		}
	}
	return nil, 0
}

// has reports whether the store lists the object; it does not read it.
func (s *objectStore) has(h hash) bool {
	if p, _ := s.lookup(h); p != nil {
		return true
	}
	id := h.String()
	_, err := os.Stat(filepath.Join(s.dir, "objects", id[:2], id[2:])) // one that git made
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

// open begins to read an object; nothing is verified yet.
func (s *objectStore) open(h hash) (objectType, int64, io.ReadCloser, error) {
	p, off := s.lookup(h)
	if p != nil {
		t, size, r, err := p.open(off)
		if !errors.Is(err, errDelta) {
			return t, size, r, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
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
		return 0, missing(fmt.Errorf("it is a %s, not a %s", t, want))
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
		return n, missing(errors.New("its bytes do not have its hash"))
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

// read gives a whole, verified object.
func (s *objectStore) read(h hash, want objectType, path string) ([]byte, error) {
	var b bytes.Buffer
	_, err := s.copyTo(h, want, path, &b)
	return b.Bytes(), err
}

// size is a blob's length, as its header says; path is for the error.
func (s *objectStore) size(h hash, path string) (int64, error) {
	_, size, r, err := s.open(h)
	if err != nil {
		return 0, &MissingObjectError{Object: h.String(), Path: path, Err: err}
	}
	return size, r.Close()
}

// check reads an object for nothing but its being intact.
func (s *objectStore) check(h hash, want objectType, path string) error {
	_, err := s.copyTo(h, want, path, io.Discard)
	return err
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
	s.packs, s.order = map[string]*packFile{}, nil
}

// indexPaths lists the paths in a git index file.
func indexPaths(r io.Reader) ([]string, error) {
	var idx index.Index
	if err := index.NewDecoder(r).Decode(&idx); err != nil {
		return nil, err
	}
	paths := make([]string, 0, len(idx.Entries))
	for _, e := range idx.Entries {
		paths = append(paths, e.Name)
	}
	return paths, nil
}
