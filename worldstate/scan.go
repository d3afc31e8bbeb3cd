package worldstate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/fsys"
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
	// readTries bounds reading a file that keeps changing.
	readTries = 3
	// concurrentDepth: directories deeper than this are visited one at a time, and
	// their parents are closed meanwhile, so that the open files are bounded by
	// scanWorkers times this however deep the tree is.
	concurrentDepth = 24
)

// What is left out of a snapshot for its place. Longer paths than a system call
// takes are walked and restored in parts; these limits keep what a snapshot and a
// journal hold of each path within bounds, and a tree less deep than git's own
// limit (core.maxTreeDepth, 2048 by default).
const (
	// MaxDepth is how many components a path in a snapshot has at most.
	MaxDepth = 1024
	// MaxPathBytes is how long a path in a snapshot is at most.
	MaxPathBytes = 32 << 10
	// maxNameBytes is NAME_MAX: a directory has room for a longer name, or is
	// left out as a whole.
	maxNameBytes = 255
)

// tooLarge says why a file is left out; "" where it is not.
func (s *scanner) tooLarge(st fsys.Stamp) string {
	if s.limit < 0 || st.Size <= s.limit || !st.IsRegular() {
		return ""
	}
	return fmt.Sprintf("%s%d bytes", reasonTooLarge, s.limit)
}

// reasonTooLarge begins the reason of a file over the limit.
const reasonTooLarge = "larger than the limit of "

// Fits reports whether a snapshot can hold a file at a path, which is relative to
// the world, slash-separated and clean.
func Fits(path string) bool {
	return strings.Count(path, "/") < MaxDepth && len(fsys.Dir(path))+1+maxNameBytes <= MaxPathBytes
}

// reasonTooDeep says why a directory and what is in it are left out.
var reasonTooDeep = fmt.Sprintf("nested too deeply: a snapshot holds paths of up to %d directories and %d bytes", MaxDepth, MaxPathBytes)

// scanner walks a world, from what was known of it. With a pack it stores what
// the store lacks, without one it only hashes.
type scanner struct {
	ctx      context.Context
	objects  *objectStore
	pack     *packWriter // nil: hash only
	excluded map[string]bool
	repo     *repository
	fault    func(op, path string) error
	watch    *watching // nil: nobody tells of changes
	seed     *seed     // of a first save; nil mostly
	progress func(Progress)
	limit    int64  // of a file's bytes; negative: none
	device   uint64 // of the root
	dir      string // of the root
	rootfd   int

	slots   chan struct{}
	wg      sync.WaitGroup
	stop    atomic.Bool
	buffers sync.Pool
	unheld  atomic.Int64
	changed atomic.Int64
	mu      sync.Mutex
	links   map[uint64]bool        // inodes of files found to have several names, and not known to
	nested  map[string]*repository // repositories inside that were found, nil those that have gone
	were    map[string]*repository // those inside when what is known was seen
	err     error
	done    Progress
	root    *node
}

// scan looks at the world: at all of it, or at what marks say has changed since
// known, which may be nil. The error is the context's, the root's or the
// store's; what cannot be read inside is listed, not an error.
func (w *World) scan(ctx context.Context, root *fsys.Root, known *knowledge, marks *mark, pack *packWriter) (*scanned, error) {
	repo := w.repository(known)
	same := known != nil && known.repo.sameRules(repo)
	if same && marks != nil && marks.empty() && !known.root.unsure() {
		return w.unchanged(ctx, known.root, repo)
	}
	s := &scanner{
		ctx: ctx, objects: w.objects, pack: pack, excluded: w.excluded,
		repo: repo, dir: w.dir, fault: w.fault, progress: w.opts.Progress, limit: w.opts.FileLimitBytes, slots: make(chan struct{}, scanWorkers),
	}
	if w.watch.on() {
		s.watch = w.watch
	}
	if pack != nil && known == nil {
		s.seed = repo.objects.load(w.objects.lending())
		defer s.seed.close()
	}
	s.done.Known = len(repo.tracked)
	v := &visit{s: s, chain: repo.outer, same: same}
	if known != nil {
		s.done.Known, v.prev = known.root.sum.files, known.root
		if known.repo != nil {
			s.were = known.repo.nested
		}
	}
	if same {
		v.mark = marks
	}
	whole := v.mark == nil
	if err := s.walk(root, v); err != nil {
		return nil, fmt.Errorf("scan %s: %w", w.dir, err)
	}
	if s.done.Done = true; s.progress != nil {
		s.progress(s.done)
	}
	if s.err == nil {
		s.err = ctx.Err()
	}
	if s.err == nil && s.seed.lent() {
		s.err = w.objects.borrow(s.seed.objects)
		w.opts.Hook("borrowed")
	}
	if s.err != nil {
		return nil, fmt.Errorf("scan %s: %w", w.dir, s.err)
	}
	w.repo = repo.withNested(s.nested)
	sc := &scanned{listing: &listing{s.root}, repo: w.repo, unheld: int(s.unheld.Load()), changed: int(s.changed.Load()), whole: whole, links: s.links}
	sc.gather()
	return sc, nil
}

// unchanged is a scan that has nothing to look at.
func (w *World) unchanged(ctx context.Context, root *node, repo *repository) (*scanned, error) {
	if w.opts.Progress != nil {
		w.opts.Progress(Progress{Known: root.sum.files, Done: true})
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("scan %s: %w", w.dir, err)
	}
	sc := &scanned{listing: &listing{root}, repo: repo}
	sc.gather()
	return sc, nil
}

// walk visits the root directory and all beneath.
func (s *scanner) walk(root *fsys.Root, v *visit) error {
	if err := root.Open(); err != nil {
		return err
	}
	fd, err := fsys.Openat(root.Fd, ".", fsys.DirFlags, 0)
	if err != nil {
		return err
	}
	v.fd, s.rootfd = fd, root.Fd
	if st, err := fsys.Fstat(fd); err == nil {
		s.device = st.Dev
	}
	v.run()
	s.wg.Wait()
	return nil
}

func (s *scanner) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.stop.Store(true)
}

func (s *scanner) stopped() bool { return s.stop.Load() || s.ctx.Err() != nil }

// seam is where a test makes an operation fail; nil outside tests.
func (s *scanner) seam(op, path string) error {
	if s.fault == nil {
		return nil
	}
	return s.fault(op, path)
}

// saw counts a file for the person who waits.
func (s *scanner) saw(size int64) {
	if s.progress == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done.Files++
	s.done.Bytes += size
	s.progress(s.done)
}

// do runs f on a worker when one is free, otherwise here.
func (s *scanner) do(f func()) {
	select {
	case s.slots <- struct{}{}:
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			defer func() { <-s.slots }()
			f()
		}()
	default:
		f()
	}
}

// visit is the look at one directory. It ends when every file in it is read
// and every directory in it has ended; whoever ends last goes on with the
// directory above, so that nobody waits.
type visit struct {
	s    *scanner
	up   *visit
	name string
	path string
	deep int        // components of path
	at   int        // its place among the items of up.prev, -1 when it is new
	st   fsys.Sight // from the directory above
	fd   int

	prev    *node       // what was known; nil: nothing
	same    bool        // the rules in force are those prev was seen under
	tracked bool        // the directory is ignored: only paths in the user's index count
	nest    *repository // the nearest one inside the world; nil: none
	nestAt  string      // where its top is
	isTop   bool        // the directory is or was the top of one
	mark    *mark
	chain   ignore.Chain
	watched *watched // nil: no event tells of its changes
	seen    sighting // of this time; items and others are prev's until end
	now     time.Time

	left  atomic.Int32
	mu    sync.Mutex
	edits []edit
	fault string
	later []*visit // directories in it, where it is deeper than concurrentDepth
}

// run looks at the directory whose descriptor v.fd is.
func (v *visit) run() {
	v.left.Store(1)
	defer v.leave()
	if v.s.stopped() {
		return
	}
	if err := v.look(); err != nil {
		v.unreadable(err)
	}
	v.goDeeper()
}

// goDeeper visits the directories in a deep one, one after the other. The
// directory itself is closed meanwhile, and found again by its path.
func (v *visit) goDeeper() {
	for i, c := range v.later {
		if v.fd < 0 && !v.reopen() {
			for _, c := range v.later[i:] {
				c.fault = errContentChanged.Error()
				c.leave()
			}
			return
		}
		if !c.open() {
			continue
		}
		fsys.CloseFD(v.fd)
		v.fd = -1
		c.run()
	}
}

// reopen opens the directory again; false where another stands at its path now.
func (v *visit) reopen() bool {
	fd, err := fsys.OpenBeneath(v.s.rootfd, v.path)
	if err != nil {
		return false
	}
	if st, err := fsys.Fstat(fd); err != nil || st.Ino != v.st.Ino || st.Dev != v.st.Dev {
		fsys.CloseFD(fd)
		return false
	}
	v.fd = fd
	return true
}

// leave ends one thing the visit waits for; the last one ends the visit.
func (v *visit) leave() {
	for v != nil && v.left.Add(-1) == 0 {
		if v.fd >= 0 {
			unix.Close(v.fd)
		}
		n := v.end()
		if v.up == nil {
			v.s.root = n
			return
		}
		v.up.child(v, n)
		v = v.up
	}
}

// unreadable is what the whole directory comes to when it cannot be read.
func (v *visit) unreadable(err error) {
	switch {
	case v.up == nil:
		v.s.fail(err)
	case fsys.Exhausted(err):
		v.s.fail(fmt.Errorf("%s: %w", v.path, err))
	case fsys.IsErrno(err, unix.ENOTDIR, unix.ELOOP):
		v.fault = errContentChanged.Error()
	default:
		v.fault = "unreadable: " + reason(err)
	}
}

// look goes through the names that must be looked at.
func (v *visit) look() error {
	if err := v.s.seam("readdir", v.path); err != nil {
		return err
	}
	if v.prev == nil {
		v.mark = nil
	}
	told := v.listen()
	v.now = time.Now()
	st, err := fsys.Fstat(v.fd)
	if err != nil {
		return err
	}
	v.seen = sighting{dir: fsys.Sight{Stamp: st, Racy: fsys.Racy(st, v.now)}}
	v.seen.foreign = !told || st.Dev != v.s.device
	if v.prev != nil && (v.prev.seen == nil || v.prev.seen.fault != "") {
		v.prev, v.same, v.mark = nil, false, nil
	}
	if v.mark != nil && v.rulesMarked() {
		v.mark = nil
	}
	if v.mark != nil {
		// Only a whole look proves that the names are those of this moment.
		v.seen.dir, v.seen.foreign = v.prev.seen.dir, v.prev.seen.foreign
		v.enter(v.s.repo.nested[v.path] != nil)
		v.keepRules()
		v.lookMarked()
		return nil
	}
	if v.prev != nil && v.prev.seen.dir.Sure(st) {
		// Its names are those it had. The rules' file may have changed.
		v.enter(v.s.repo.nested[v.path] != nil)
		v.readRules(v.prev.item(".gitignore") != nil || v.prev.other(".gitignore") != nil)
		v.lookKnown()
		return nil
	}
	names, err := fsys.ReadNames(v.fd)
	if err != nil {
		return err
	}
	_, git := slices.BinarySearch(names, ".git")
	v.enter(git)
	_, has := slices.BinarySearch(names, ".gitignore")
	v.readRules(has)
	v.lookNames(names)
	return nil
}

// listen watches the directory, before it is read. false: nobody will tell of
// its changes, though somebody should.
func (v *visit) listen() bool {
	t := v.s.watch
	if t == nil {
		return true
	}
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	if !t.on() {
		return true
	}
	var parent *watched
	if v.up != nil {
		if parent = v.up.watched; parent == nil {
			return true // beneath a directory that is looked at every time
		}
		if v.watched = parent.kids[v.name]; v.watched != nil && v.mark != nil {
			return true
		}
		v.mark = nil
	} else if v.mark != nil {
		v.watched = t.root
		return true
	}
	v.watched = t.watch(parent, v.name, v.fd, v.up == nil)
	return v.watched != nil || !t.on()
}

// lookKnown looks at the names the directory had.
func (v *visit) lookKnown() {
	n := v.prev
	for i := range n.items {
		v.examine(n.items[i].name, i, nil)
	}
	for i := range n.seen.others {
		if o := &n.seen.others[i]; !v.same || o.why != "" {
			v.examine(o.name, -1, o)
		}
	}
}

// lookNames looks at the names just read, which are sorted.
func (v *visit) lookNames(names []string) {
	i, j := 0, 0
	var items []item
	var others []other
	if v.prev != nil {
		items, others = v.prev.items, v.prev.seen.others
	}
	for _, name := range names {
		for ; i < len(items) && items[i].name < name; i++ {
			v.gone(items[i].name)
		}
		for ; j < len(others) && others[j].name < name; j++ {
			v.gone(others[j].name)
		}
		at, o := -1, (*other)(nil)
		if i < len(items) && items[i].name == name {
			at = i
			i++
		} else if j < len(others) && others[j].name == name {
			o = &others[j]
			j++
		}
		v.examine(name, at, o)
	}
	for ; i < len(items); i++ {
		v.gone(items[i].name)
	}
	for ; j < len(others); j++ {
		v.gone(others[j].name)
	}
}

// lookMarked looks at the marked names, and at those no event tells of.
func (v *visit) lookMarked() {
	n := v.prev
	look := func(name string) {
		at := n.index(name)
		var o *other
		if at < 0 {
			o = n.other(name)
		}
		v.examine(name, at, o)
	}
	for name := range v.mark.names {
		look(name)
	}
	for name := range v.mark.subs {
		if _, twice := v.mark.names[name]; !twice {
			look(name)
		}
	}
	if n.sum.unsure == 0 {
		return
	}
	done := func(name string) bool {
		_, named := v.mark.names[name]
		_, sub := v.mark.subs[name]
		return named || sub
	}
	for i := range n.items {
		it := &n.items[i]
		if (it.sub != nil && it.sub.unsure() || it.kind == kindFile && n.seen.items[i].Nlink > 1) && !done(it.name) {
			look(it.name)
		}
	}
	for i := range n.seen.others {
		if o := &n.seen.others[i]; o.why != "" && !bodiless(o.why) && !done(o.name) {
			look(o.name)
		}
	}
}

// unsure: it must be looked into even if no event tells of a change.
func (n *node) unsure() bool { return n.sum.unsure > 0 }

// other gives a name that is no item, nil when it is absent.
func (n *node) other(name string) *other {
	if n.seen == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(n.seen.others, name, func(o other, name string) int { return strings.Compare(o.name, name) })
	if !ok {
		return nil
	}
	return &n.seen.others[i]
}
