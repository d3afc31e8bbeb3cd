package scan

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/internal/usergit"
)

const (
	// scanWorkers walk and read at once; blocking reads of a cold cache want
	// more than there are cores.
	scanWorkers = 16
	// readTries bounds reading a file that keeps changing.
	readTries = 3
)

// tooLarge says why a file is left out; "" where it is not.
func (s *scanner) tooLarge(st fsys.Stamp) string {
	if s.limit < 0 || st.Size <= s.limit || !st.IsRegular() {
		return ""
	}
	return fmt.Sprintf("%s%d bytes", ReasonTooLarge, s.limit)
}

// ReasonTooLarge begins the reason of a file over the limit.
const ReasonTooLarge = "larger than the limit of "

// ReasonTooDeep says why a directory and what is in it are left out.
var ReasonTooDeep = fmt.Sprintf("nested too deeply: a snapshot holds paths of up to %d directories and %d bytes", tree.MaxDepth, tree.MaxPathBytes)

// Progress is how far a scan has come.
type Progress struct {
	Files int   // seen so far, links included
	Bytes int64 // of these files
	// Known is how many files the scan before saw; at the first one how many the
	// user's git index lists, 0 without one.
	Known int
	Done  bool // the scan has ended; reported once, in any case
}

// Options are what a World's Options say of scans.
type Options struct {
	Hook           func(point string)
	FileLimitBytes int64 // negative: no limit
	Progress       func(Progress)
	Watch          bool
}

// Tracker owns what is known of one directory from one look to the next: its
// listing, the rules of the user's repository, and what was watched since. Safe for
// no concurrent use.
type Tracker struct {
	dir      string
	Cache    string // the stat cache's file
	objects  *objects.Store
	Excluded map[string]bool // relative paths
	opts     Options
	Fault    func(op, path string) error // tests: makes an operation fail
	PackLost bool                        // a pack has gone since the last look

	knows *Knowledge          // the world as last known; nil: not read from disk yet
	repo  *usergit.Repository // what the user's repository last said
	Watch *watching           // nil without Options.Watch, and before the first scan
}

// New returns a tracker that knows nothing yet.
func New(dir, cache string, s *objects.Store, excluded map[string]bool, o Options) *Tracker {
	return &Tracker{dir: dir, Cache: cache, objects: s, Excluded: excluded, opts: o}
}

// Close ends the watching and drops what is known.
func (w *Tracker) Close() {
	if w.Watch.on() {
		w.Watch.end("closed")
	}
	w.knows = nil
}

// Known returns the listing known to be stored, nil without one.
func (w *Tracker) Known() *tree.Listing {
	if w.knows == nil {
		return nil
	}
	return w.knows.listing()
}

// IsExcluded reports whether a path is, or lies in, one that is never part of the
// world.
func (w *Tracker) IsExcluded(path string) bool {
	if w.Excluded[path] {
		return true
	}
	hit := false
	fsys.Ancestors(path, func(d string) bool { hit = w.Excluded[d]; return !hit })
	return hit
}

// scanner walks a world, from what was known of it. With a pack it stores what
// the store lacks, without one it only hashes.
type scanner struct {
	ctx      context.Context
	objects  *objects.Store
	pack     *objects.Writer // nil: hash only
	excluded map[string]bool
	repo     *usergit.Repository
	fault    func(op, path string) error
	watch    *watching     // nil: changes are not reported
	seed     *usergit.Seed // of a first save; nil mostly
	progress func(Progress)
	limit    int64  // of a file's bytes; negative: none
	device   uint64 // of the root
	dir      string // of the root

	slots   chan struct{}
	wg      sync.WaitGroup
	stop    atomic.Bool
	buffers sync.Pool
	unheld  atomic.Int64
	changed atomic.Int64
	mu      sync.Mutex
	links   map[uint64]bool                // inodes of files found to have several names, and not known to
	nested  map[string]*usergit.Repository // repositories inside that were found, nil those that have gone
	were    map[string]*usergit.Repository // those inside when what is known was seen
	err     error
	done    Progress
	root    *tree.Node
}

// Scan looks at the world: at all of it, or at what marks say has changed since
// known, which may be nil. The error is the context's, the root's or the
// store's; what cannot be read inside is listed, not an error.
func (w *Tracker) Scan(ctx context.Context, root *fsys.Root, known *Knowledge, marks *mark, pack *objects.Writer) (*Scanned, error) {
	var inside *usergit.Repository
	if known != nil {
		inside = known.Repo
	}
	w.repo = w.repo.Refresh(w.dir, inside)
	repo := w.repo
	same := known != nil && known.Repo.SameRules(repo)
	if same && marks != nil && marks.empty() && !known.Root.Unsure() {
		return w.unchanged(ctx, known.Root, repo)
	}
	s := &scanner{
		ctx: ctx, objects: w.objects, pack: pack, excluded: w.Excluded,
		repo: repo, dir: w.dir, fault: w.Fault, progress: w.opts.Progress, limit: w.opts.FileLimitBytes, slots: make(chan struct{}, scanWorkers),
	}
	if w.Watch.on() {
		s.watch = w.Watch
	}
	if pack != nil && known == nil {
		s.seed = repo.Objects.Load()
		defer s.seed.Close()
	}
	s.done.Known = len(repo.Tracked)
	v := &visit{s: s, chain: repo.Outer, same: same}
	if known != nil {
		s.done.Known, v.prev = known.Root.Sum.Files, known.Root
		if known.Repo != nil {
			s.were = known.Repo.Nested
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
	if s.err != nil {
		return nil, fmt.Errorf("scan %s: %w", w.dir, s.err)
	}
	w.repo = repo.WithNested(s.nested)
	sc := &Scanned{Listing: &tree.Listing{Root: s.root}, repo: w.repo, unheld: int(s.unheld.Load()), changed: int(s.changed.Load()), whole: whole, links: s.links}
	sc.gather()
	return sc, nil
}

// unchanged is a scan that has nothing to look at.
func (w *Tracker) unchanged(ctx context.Context, root *tree.Node, repo *usergit.Repository) (*Scanned, error) {
	if w.opts.Progress != nil {
		w.opts.Progress(Progress{Known: root.Sum.Files, Done: true})
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("scan %s: %w", w.dir, err)
	}
	sc := &Scanned{Listing: &tree.Listing{Root: root}, repo: repo}
	sc.gather()
	return sc, nil
}

// walk visits the root directory and all beneath.
func (s *scanner) walk(root *fsys.Root, v *visit) error {
	fd, err := fsys.Openat(root.Fd, ".", fsys.DirFlags, 0)
	if err != nil {
		return err
	}
	v.fd = fd
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
func (s *scanner) seam(op, parent, name string) error {
	if s.fault == nil {
		return nil
	}
	return s.fault(op, fsys.Join(parent, name))
}

// saw counts a file for the user who waits.
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
