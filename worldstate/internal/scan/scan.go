// Package scan reads a world's directory into a listing and stores new content in a pack. A
// Tracker keeps what is known between scans (the listing with its stat cache, the user's
// repository), so that a scan reads only what has changed.
package scan

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/internal/usergit"
)

const (
	// scanWorkers walk and read concurrently. There are more than cores, since reads of a cold
	// cache block.
	scanWorkers = 16
	// readTries bounds the attempts to read a file that keeps changing.
	readTries = 3
)

// tooLarge returns the reason why a file is left out, "" if it is not.
func (s *scanner) tooLarge(st fsys.Stamp) string {
	if s.limit < 0 || st.Size <= s.limit || !st.IsRegular() {
		return ""
	}
	return fmt.Sprintf("%s%d bytes", ReasonTooLarge, s.limit)
}

// ReasonTooLarge begins the reason of a skip for a file over the limit.
const ReasonTooLarge = "larger than the limit of "

// ReasonTooDeep is the reason of a skip for a directory whose content is left out.
var ReasonTooDeep = fmt.Sprintf("nested too deeply: a snapshot holds paths of up to %d directories and %d bytes",
	tree.MaxDepth, tree.MaxPathBytes)

// Progress is the progress of a scan.
type Progress struct {
	Files int   // seen so far, links included
	Bytes int64 // of these files
	// Known is the number of files that the previous scan saw; for the first one, of those in
	// the user's git index, 0 without one.
	Known int
	Done  bool // the scan has ended; always reported once
}

// Options are the part of a World's Options that concerns scans.
type Options struct {
	FileLimitBytes int64 // negative: no limit
	Secrets        []string
	Progress       func(Progress)
}

// Tracker owns what is known of one directory between scans: its listing, and the rules of the
// user's repository. It is not safe for concurrent use.
type Tracker struct {
	dir      string
	Cache    string // the stat cache's file
	objects  *objects.Store
	Excluded map[string]bool // relative paths
	opts     Options
	// Before, if not nil, is called before each operation on a path. Its error fails the
	// operation. Tests set it: no file system can be made to fail at one chosen operation only,
	// and root, as whom they may run, may read every file.
	Before   func(op, path string) error
	PackLost bool // a pack was removed since the previous scan

	knows *Knowledge          // the world as last known; nil before it is read from disk
	repo  *usergit.Repository // the user's repository as last read
}

// New returns a tracker without knowledge.
func New(dir, cache string, s *objects.Store, excluded map[string]bool, o Options) *Tracker {
	return &Tracker{dir: dir, Cache: cache, objects: s, Excluded: excluded, opts: o}
}

// Close drops what is known.
func (w *Tracker) Close() { w.knows = nil }

// LastListing returns the listing whose content is stored, nil if there is none.
func (w *Tracker) LastListing() *tree.Listing {
	if w.knows == nil || w.knows.Root == nil {
		return nil
	}
	return &tree.Listing{Root: w.knows.Root}
}

// Repositories returns where the repositories are that the last scan found; see usergit's Tops.
func (w *Tracker) Repositories(most int) []string { return w.repo.Tops(most) }

// IsExcluded reports whether a path is, or is inside, one that is never part of the world.
func (w *Tracker) IsExcluded(path string) bool {
	hit := w.Excluded[path]
	fsys.Ancestors(path, func(d string) bool { hit = hit || w.Excluded[d]; return !hit })
	return hit
}

// scanner is one scan. With a pack it stores content that the store lacks; without one it only
// hashes.
type scanner struct {
	objects  *objects.Store
	pack     *objects.Writer // if nil, content is only hashed
	excluded map[string]bool
	repo     *usergit.Repository
	before   func(op, path string) error // of the Tracker
	progress func(Progress)
	limit    int64 // of a file's bytes; none if negative
	patterns []string
	secrets  map[string]bool // ignored files that are listed for their names
	dir      string          // of the root

	slots   chan struct{}
	wg      sync.WaitGroup
	stop    atomic.Bool
	buffers sync.Pool
	changed atomic.Int64
	mu      sync.Mutex
	nested  map[string]*usergit.Repository // repositories inside that were found; nil values for removed ones
	were    map[string]*usergit.Repository // repositories inside at the previous scan
	err     error
	done    Progress
	root    *tree.Node
}

// Scan scans the whole world, and reads what has changed since known, which may be nil.
// The error is the context's, the root's or the store's. A path inside that cannot be read is
// listed and is not an error.
func (w *Tracker) Scan(ctx context.Context, root *fsys.Root, known *Knowledge, pack *objects.Writer) (*Scanned, error) {
	var inside *usergit.Repository
	if known != nil {
		inside = known.Repo
	}
	w.repo = w.repo.Refresh(w.dir, inside)
	repo := w.repo
	// Under the same rules, a name that is ignored or not stays so, and its path need not be matched again.
	same := known != nil && known.Repo.SameRules(repo)
	s := &scanner{
		dir: w.dir, repo: repo, nested: make(map[string]*usergit.Repository), objects: w.objects, pack: pack,
		excluded: w.Excluded, limit: w.opts.FileLimitBytes, patterns: w.opts.Secrets, secrets: make(map[string]bool),
		before: w.Before, progress: w.opts.Progress, slots: make(chan struct{}, scanWorkers),
	}
	defer context.AfterFunc(ctx, func() { s.stop.Store(true) })()
	s.done.Known = len(repo.Tracked)
	v := &visit{s: s, chain: repo.Outer, same: same}
	if known != nil {
		s.done.Known, v.prev = known.Root.Sum.Files, known.Root
		if known.Repo != nil {
			s.were = known.Repo.Nested
		}
	}
	var err error
	if v.fd, err = fsys.Openat(root.Fd, ".", fsys.DirFlags, 0); err != nil {
		return nil, fmt.Errorf("scan %s: %w", w.dir, err)
	}
	v.run()
	s.wg.Wait()
	if s.done.Done = true; s.progress != nil {
		s.progress(s.done)
	}
	if err := cmp.Or(s.err, ctx.Err()); err != nil {
		return nil, fmt.Errorf("scan %s: %w", w.dir, err)
	}
	w.repo = repo.WithNested(s.nested)
	sc := &Scanned{Listing: &tree.Listing{Root: s.root}, repo: w.repo, changed: int(s.changed.Load())}
	sc.gather(s.secrets)
	return sc, nil
}

func (s *scanner) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = cmp.Or(s.err, err)
	s.stop.Store(true)
}

func (s *scanner) begin(op, parent, name string) error {
	if s.before == nil {
		return nil
	}
	return s.before(op, fsys.Join(parent, name))
}

func (s *scanner) countFile(size int64) {
	if s.progress == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done.Files++
	s.done.Bytes += size
	s.progress(s.done)
}

// do runs f on a worker if one is free, otherwise in this goroutine.
func (s *scanner) do(f func()) {
	select {
	case s.slots <- struct{}{}:
		s.wg.Go(func() {
			defer func() { <-s.slots }()
			f()
		})
	default:
		f()
	}
}

// MaxSecretBytes is the largest size of an ignored file that is listed for its name.
const MaxSecretBytes = 1 << 20

// isSecret reports whether a name is one of Options.Secrets.
func (s *scanner) isSecret(name string) bool {
	return slices.ContainsFunc(s.patterns, func(p string) bool {
		found, _ := path.Match(p, name) // false for a bad pattern
		return found
	})
}

// addSecret records a path that is listed for its name.
func (s *scanner) addSecret(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets[path] = true
}
