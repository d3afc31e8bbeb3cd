package worldstate

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/ignore"
)

// The reasons a path is listed as skipped without making a snapshot partial:
// there are no bytes to hold.
const (
	reasonFIFO   = "fifo"
	reasonSocket = "socket"
	reasonDevice = "device"
)

const (
	// scanWorkers walk and read at once; blocking reads of a cold cache want
	// more than there are cores.
	scanWorkers = 16
	// wholeFileBytes: files up to it are read at once, larger ones streamed.
	wholeFileBytes = 4 << 20
	// readTries bounds reading a file that keeps changing.
	readTries = 3
)

// ignoredRoot is a topmost path the rules leave out of a scan.
type ignoredRoot struct {
	path  string
	isDir bool
}

// scanned is one look at a world.
type scanned struct {
	*listing
	stamps  map[string]stamp // of files and links
	skips   []Skip           // paths whose content is not held
	notes   []Skip           // what is held, but not in full, and odd things met
	partial bool             // some skip is more than a FIFO, socket or device
	ignored []ignoredRoot
	frozen  []frozenRule // rules that no captured file holds
	cache   statCache    // what the next scan may rely on
	fresh   bool         // cache differs from the one given
}

// scanner walks a world. With a pack it stores what the store lacks, without
// one it only hashes.
type scanner struct {
	ctx      context.Context
	root     int
	objects  *objectStore
	pack     *packWriter // nil: hash only
	cache    statCache
	excluded map[string]bool
	repo     *repository
	kept     map[string]bool // directories above a tracked path
	fault    func(op, path string) error
	progress func(Progress)

	slots chan struct{}
	wg    sync.WaitGroup
	mu    sync.Mutex
	out   scanned
	list  []entry
	err   error
	done  Progress
}

// scan looks at the whole world. The error is the context's, the root's or
// the store's; what cannot be read inside is listed, not an error.
func (w *World) scan(ctx context.Context, root int, cache statCache, pack *packWriter) (*scanned, error) {
	s := &scanner{
		ctx: ctx, root: root, objects: w.objects, pack: pack, cache: cache, excluded: w.excluded,
		repo: readRepository(w.dir), kept: map[string]bool{}, fault: w.fault, progress: w.opts.Progress,
		slots: make(chan struct{}, scanWorkers),
	}
	for path := range s.repo.tracked {
		ancestors(path, func(d string) bool { s.kept[d] = true; return true })
	}
	s.out.stamps = make(map[string]stamp, len(cache))
	s.out.cache = make(statCache, len(cache))
	s.out.notes = s.repo.notes
	for _, r := range s.repo.outer {
		s.out.frozen = append(s.out.frozen, frozenRule{r.Up, "", r.Patterns})
	}
	s.directory("", s.repo.outer, false)
	s.wg.Wait()
	if s.done.Done = true; s.progress != nil {
		s.progress(s.done)
	}
	if s.err == nil {
		s.err = ctx.Err()
	}
	if s.err != nil {
		return nil, fmt.Errorf("scan %s: %w", w.dir, s.err)
	}
	out := &s.out
	out.listing = newListing(s.list)
	out.fresh = out.fresh || len(out.cache) != len(cache)
	byPath := func(l []Skip) func(i, j int) bool {
		return func(i, j int) bool { return l[i].Path < l[j].Path }
	}
	sort.Slice(out.skips, byPath(out.skips))
	sort.Slice(out.notes, byPath(out.notes))
	sort.Slice(out.ignored, func(i, j int) bool { return out.ignored[i].path < out.ignored[j].path })
	sort.SliceStable(out.frozen, func(i, j int) bool { return out.frozen[i].less(out.frozen[j]) })
	return out, nil
}

// run does f on a worker when one is free, otherwise here.
func (s *scanner) run(wg *sync.WaitGroup, f func()) {
	select {
	case s.slots <- struct{}{}:
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() { <-s.slots }()
			f()
		}()
	default:
		f()
	}
}

func (s *scanner) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

func (s *scanner) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil || s.ctx.Err() != nil
}

// skip lists a path whose content is not held.
func (s *scanner) skip(path, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.skips = append(s.out.skips, Skip{path, why})
	if why != reasonFIFO && why != reasonSocket && why != reasonDevice {
		s.out.partial = true
	}
}

func (s *scanner) note(path, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.notes = append(s.out.notes, Skip{path, what})
}

// errFault is what a test's seam returns; nil outside tests.
func (s *scanner) seam(op, path string) error {
	if s.fault == nil {
		return nil
	}
	return s.fault(op, path)
}

// directory scans one directory and what lies beneath. onlyTracked: the
// directory is ignored, and only paths in the user's index are looked at.
func (s *scanner) directory(path string, rules ignore.Chain, onlyTracked bool) {
	if s.stopped() {
		return
	}
	fd, err := openBeneath(s.root, path)
	if err == nil {
		err = s.seam("readdir", path)
	}
	if err != nil {
		if fd >= 0 {
			unix.Close(fd)
		}
		s.unreadable(path, err)
		return
	}
	d := os.NewFile(uintptr(fd), path)
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		s.unreadable(path, err)
		return
	}
	if !onlyTracked {
		rules = s.readRules(fd, path, rules)
	}
	sort.Strings(names)
	var files sync.WaitGroup
	for _, name := range names {
		s.item(fd, path, name, rules, onlyTracked, &files)
	}
	files.Wait()
}

// unreadable lists what could not be opened. What has vanished meanwhile is
// simply not there; the world's root must be there.
func (s *scanner) unreadable(path string, err error) {
	switch {
	case path == "":
		s.fail(err)
	case errors.Is(err, unix.ENOENT):
	case isErrno(err, unix.ENOTDIR, unix.ELOOP, unix.ENXIO):
		s.skip(path, errContentChanged.Error())
	case isErrno(err, unix.EMFILE, unix.ENFILE, unix.ENOMEM):
		s.fail(fmt.Errorf("%s: %w", path, err))
	default:
		s.skip(path, "unreadable: "+reason(err))
	}
}

// readRules adds a directory's own .gitignore to the rules.
func (s *scanner) readRules(dirfd int, path string, rules ignore.Chain) ignore.Chain {
	name := join(path, ".gitignore")
	st, err := lstatat(dirfd, ".gitignore")
	if err != nil || !st.isRegular() {
		return rules
	}
	if st.size > maxIgnoreBytes {
		s.note(name, fmt.Sprintf("over %d bytes: its rules were not read", maxIgnoreBytes))
		return rules
	}
	fd, err := openat(dirfd, ".gitignore", unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return rules // the file itself is listed as unreadable
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxIgnoreBytes))
	if err != nil {
		return rules
	}
	r := ignore.Parse(path, "", data)
	next := rules.With(r)
	if len(r.Patterns) > 0 && next.Ignored(name, false) && !s.repo.tracked[name] {
		s.mu.Lock()
		s.out.frozen = append(s.out.frozen, frozenRule{"", path, r.Patterns})
		s.mu.Unlock()
	}
	return next
}

// item looks at one name of a directory.
func (s *scanner) item(dirfd int, parent, name string, rules ignore.Chain, onlyTracked bool, files *sync.WaitGroup) {
	path := join(parent, name)
	if alwaysIgnored(name) || s.excluded[path] {
		return
	}
	st, err := lstatat(dirfd, name)
	if err != nil {
		s.unreadable(path, err)
		return
	}
	beneathOnly := false
	if onlyTracked || rules.Ignored(path, st.isDir()) {
		switch {
		case !st.isDir() && s.repo.tracked[path]:
		case st.isDir() && s.kept[path]:
			beneathOnly = true
		default:
			s.leaveOut(path, st.isDir())
			return
		}
	}
	switch {
	case st.isDir():
		s.add(entry{path: path, state: state{kind: kindDir, perm: st.mode & 0o777}}, stamp{}, hash{})
		s.run(&s.wg, func() { s.directory(path, rules, beneathOnly) })
	case st.isRegular():
		s.file(dirfd, name, path, st, files)
	case st.isLink():
		s.link(dirfd, name, path, st)
	case st.mode&unix.S_IFMT == unix.S_IFIFO:
		s.skip(path, reasonFIFO)
	case st.mode&unix.S_IFMT == unix.S_IFSOCK:
		s.skip(path, reasonSocket)
	default:
		s.skip(path, reasonDevice)
	}
}

func (s *scanner) leaveOut(path string, isDir bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.ignored = append(s.out.ignored, ignoredRoot{path, isDir})
}

// add records an entry; a stamp that is not zero goes to the next cache.
func (s *scanner) add(e entry, st stamp, cachedAs hash) {
	if hostileName(dir(e.path), base(e.path), e.state, e.size) {
		e.stored = storedName(base(e.path))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, e)
	if e.kind == kindDir {
		return
	}
	s.out.stamps[e.path] = st
	if !cachedAs.isZero() {
		s.out.cache[e.path] = cached{st.size, st.mtime, st.ctime, st.ino, st.dev, st.mode, cachedAs}
	}
	if s.progress != nil {
		s.done.Files++
		s.done.Bytes += e.size
		s.done.Known = len(s.cache)
		s.progress(s.done)
	}
}

func (s *scanner) file(dirfd int, name, path string, st stamp, files *sync.WaitGroup) {
	if st.mode&(unix.S_ISUID|unix.S_ISGID|unix.S_ISVTX) != 0 {
		s.note(path, "setuid, setgid and sticky bits are not kept")
	}
	if c, ok := s.cache[path]; ok && c.matches(st) {
		s.add(entry{path: path, state: state{kindFile, st.mode & 0o777, c.hash}, size: st.size}, st, c.hash)
		return
	}
	s.run(files, func() {
		if s.stopped() {
			return
		}
		s.readFile(dirfd, name, path)
	})
}

// readFile reads, hashes and (with a pack) stores a file that is not in the
// cache, again while it changes.
func (s *scanner) readFile(dirfd int, name, path string) {
	for try := 0; ; try++ {
		at := time.Now()
		h, st, err := s.content(dirfd, name, path)
		switch {
		case err == nil:
			remember := h
			if racy(st, at) {
				remember = hash{}
			}
			s.mu.Lock()
			s.out.fresh = s.out.fresh || !remember.isZero()
			s.mu.Unlock()
			s.add(entry{path: path, state: state{kindFile, st.mode & 0o777, h}, size: st.size}, st, remember)
			return
		case errors.Is(err, errContentChanged) && try+1 < readTries:
		case errors.Is(err, errContentChanged):
			s.skip(path, errContentChanged.Error())
			return
		case errors.As(err, new(*storeFault)):
			s.fail(err)
			return
		default:
			s.unreadable(path, err)
			return
		}
	}
}

// storeFault marks an error of the store, which ends the scan, apart from one
// of the file, which is listed.
type storeFault struct{ err error }

func (e *storeFault) Error() string { return e.err.Error() }
func (e *storeFault) Unwrap() error { return e.err }

// content gives a file's hash and the stamp it had before and after.
func (s *scanner) content(dirfd int, name, path string) (hash, stamp, error) {
	fd, err := openat(dirfd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return hash{}, stamp{}, err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	if err := s.seam("read", path); err != nil {
		return hash{}, stamp{}, err
	}
	before, err := fstat(fd)
	if err != nil {
		return hash{}, stamp{}, err
	}
	if !before.isRegular() {
		return hash{}, stamp{}, errContentChanged
	}
	var h hash
	if before.size <= wholeFileBytes {
		h, err = s.whole(f, before.size)
	} else {
		h, err = s.stream(f, before.size)
	}
	if err != nil {
		return hash{}, stamp{}, err
	}
	after, err := fstat(fd)
	if err == nil {
		if fault := s.seam("reread", path); fault != nil {
			err = fault
		} else if !after.sameContent(before) {
			err = errContentChanged
		}
	}
	return h, after, err
}

func (s *scanner) whole(f *os.File, size int64) (hash, error) {
	data := make([]byte, size+1)
	n, err := io.ReadFull(f, data)
	if err == nil || n != int(size) {
		return hash{}, errContentChanged
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return hash{}, err
	}
	data = data[:size]
	h := hashObject(blobObject, data)
	return h, s.keep(h, data)
}

// keep stores a blob where there is a pack and the store lacks it.
func (s *scanner) keep(h hash, data []byte) error {
	if s.pack == nil || s.objects.has(h) {
		return nil
	}
	if err := s.pack.add(h, blobObject, data); err != nil {
		return &storeFault{err}
	}
	return nil
}

// stream hashes a large file, and reads it a second time to store it.
func (s *scanner) stream(f *os.File, size int64) (hash, error) {
	sum := sha1.New()
	fmt.Fprintf(sum, "%s %d\x00", blobObject, size)
	n, err := io.Copy(sum, &ctxReader{s.ctx, io.LimitReader(f, size+1)})
	if err != nil {
		return hash{}, err
	}
	if n != size {
		return hash{}, errContentChanged
	}
	h := hash(sum.Sum(nil))
	if s.pack == nil || s.objects.has(h) {
		return h, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return hash{}, err
	}
	err = s.pack.addStream(h, size, &ctxReader{s.ctx, f})
	if err != nil && !errors.Is(err, errContentChanged) {
		err = &storeFault{err}
	}
	return h, err
}

// ctxReader stops a long read when its context ends.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *ctxReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

func (s *scanner) link(dirfd int, name, path string, st stamp) {
	target, err := readlinkat(dirfd, name)
	if err != nil {
		s.unreadable(path, err)
		return
	}
	h := hashObject(blobObject, target)
	if err := s.keep(h, target); err != nil {
		s.fail(err)
		return
	}
	s.add(entry{path: path, state: state{kind: kindLink, hash: h}, size: int64(len(target))}, st, hash{})
}
