package gc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/history"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/refs"
)

// A Report is what a collection did, or would do.
type Report struct {
	Store  string `json:"store"`
	DryRun bool   `json:"dry_run,omitempty"`
	// BytesBefore and BytesAfter are what the packs take on disk. After a dry
	// run BytesAfter is an upper bound.
	BytesBefore int64 `json:"bytes_before"`
	BytesAfter  int64 `json:"bytes_after"`
	Objects     int   `json:"objects"` // kept
	Snapshots   int   `json:"snapshots"`
	// Dropped are the tasks whose snapshots went, Kept those that no longer
	// exist and stay all the same. Never nil.
	Dropped []string `json:"dropped"`
	Kept    []string `json:"kept"`
	// Over: what must be kept is more than MaxBytes.
	Over bool `json:"over,omitempty"`
}

// Run runs one collection. unfinished returns what interrupted restores name.
func Run(ctx context.Context, store string, opts Options, unfinished func() ([]gitfmt.Hash, error)) (Report, error) {
	if !opts.DryRun {
		turn, err := fsys.AcquireLock(ctx, store, fsys.CollectLock, opts.LockWait)
		if err != nil {
			return Report{}, err
		}
		defer turn.Close()
	}
	s := objects.New(store)
	defer s.Close()
	named := &refs.Store{Dir: store}
	g := collector{s: s, refStore: named, unfinished: unfinished, o: opts, seen: make(map[gitfmt.Hash]bool)}
	g.report = Report{Store: store, DryRun: opts.DryRun, Dropped: []string{}, Kept: []string{}}
	if err := g.run(ctx); err != nil {
		return Report{}, fmt.Errorf("gc %s: %w", store, g.blame(err))
	}
	return g.report, nil
}

// collector is one collection.
type collector struct {
	s          *objects.Store
	refStore   *refs.Store
	unfinished func() ([]gitfmt.Hash, error)
	o          Options
	report     Report

	refs  map[string]gitfmt.Hash // as they were when it was last looked
	named []gitfmt.Hash          // what journals and o name, likewise
	old   []*objects.Pack        // our packs as they were just before; a later one's ref may not have been there
	gone  map[string]gitfmt.Hash // refs to be removed, with zero ids

	seen  map[gitfmt.Hash]bool // objects that are kept
	but   map[gitfmt.Hash]bool // objects not to be counted again
	bytes int64                // what they take now
	todo  batch                // those that are not written yet
}

// batch is objects to be written into one pack.
type batch struct {
	commits []gitfmt.Hash
	lines   lines
}

// locked takes the store's lock for one part of the collection.
func (g *collector) locked(ctx context.Context, part func() error) error {
	lock, err := fsys.AcquireLock(ctx, g.s.Dir, fsys.WriterLock, g.o.LockWait)
	if err != nil {
		return err
	}
	defer lock.Close()
	return part()
}

func (g *collector) run(ctx context.Context) error {
	var err error
	if g.o.DryRun {
		g.refs, g.named, err = g.look()
	} else {
		err = g.locked(ctx, func() error {
			g.s.Sweep()
			g.refStore.Sweep()
			if err := g.beginWriting(); err != nil {
				return err
			}
			g.refs, g.named, err = g.look()
			return err
		})
		defer os.RemoveAll(g.s.CollectDir())
	}
	if err != nil {
		return err
	}
	if g.report.BytesBefore, err = g.s.SizeBytes(); err != nil {
		return err
	}
	g.report.BytesAfter = g.report.BytesBefore
	if err := g.choose(ctx); err != nil {
		return err
	}
	g.report.Over = g.o.MaxBytes > 0 && g.bytes > g.o.MaxBytes
	if g.o.DryRun {
		g.report.BytesAfter = min(g.report.BytesBefore, g.bytes)
	} else if err := g.repack(ctx); err != nil {
		return err
	}
	g.report.Objects = len(g.seen)
	return nil
}

// beginWriting makes the directory the packs are written in. What is in it was
// left by a killed collection.
func (g *collector) beginWriting() error {
	if err := os.RemoveAll(g.s.CollectDir()); err != nil {
		return err
	}
	return os.Mkdir(g.s.CollectDir(), 0o700)
}

// look finds out what is named. The store's lock is held, unless it is a dry run.
func (g *collector) look() (refs map[string]gitfmt.Hash, named []gitfmt.Hash, err error) {
	if err := workedIn(g.s.Dir); err != nil {
		return nil, nil, err
	}
	if err := g.s.Refresh(); err != nil {
		return nil, nil, err
	}
	// In this order: git push shows its pack, then the ref, and until then keeps the pack.
	if g.old, err = g.s.OurPacks(); err != nil {
		return nil, nil, err
	}
	g.refStore.Begin()
	if refs, err = g.refStore.All(); err != nil {
		return nil, nil, err
	}
	named, err = g.roots()
	return maps.Clone(refs), named, err
}

// workedIn refuses a store that a user's git works in: its HEADs, indexes and reflogs
// name objects that no ref names.
func workedIn(store string) error {
	for _, name := range []string{"worktrees", "logs", "index"} {
		path := filepath.Join(store, name)
		if there, err := fsys.Exists(path); err != nil {
			return err
		} else if there {
			return fmt.Errorf("%w: git keeps work of its own in the store, and %s may name what would be removed; remove that first", gitfmt.ErrRefused, path)
		}
	}
	head, err := os.ReadFile(filepath.Join(store, "HEAD"))
	if err == nil && !bytes.HasPrefix(head, []byte("ref: ")) {
		err = fmt.Errorf("%w: HEAD names a commit; 'git --git-dir=%s symbolic-ref HEAD %s' puts it back", gitfmt.ErrRefused, store, refs.Latest)
	}
	return err
}

// blame adds to an error that ends a collection which ref leads to the object, and
// what helps.
func (g *collector) blame(err error) error {
	var m *gitfmt.MissingObjectError
	if !errors.As(err, &m) || fsys.Exhausted(m.Err) {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(g.refs)) {
		if g.refs[name].String() != m.Object {
			continue
		}
		if refs.IsOurs(name) {
			return fmt.Errorf("%w; %s names it; only a backup of %s can bring it back, and nothing is collected until then", err, name, g.s.Dir)
		}
		return fmt.Errorf("%w; %s names it, which is no snapshot in a pack; 'git --git-dir=%s update-ref -d %s' removes that ref", err, name, g.s.Dir, name)
	}
	return fmt.Errorf("%w; 'anamnesis world verify' names all that is damaged, and 'git --git-dir=%s repack -d' packs what is yours", err, g.s.Dir)
}

// choose finds out what is kept: first what must be, then the tasks that are
// gone, the newest first, while they fit.
func (g *collector) choose(ctx context.Context) error {
	byName, roots := g.refs, slices.Clone(g.named)
	dead := make(map[string][]string) // task → its refs
	var shared []string               // the worlds' and the latest: theirs who made the snapshot
	var places []gitfmt.Hash          // the worlds': how a restore recognises a user's edits
	for name, h := range byName {
		task, _, isTask := strings.Cut(strings.TrimPrefix(name, refs.TaskPrefix), "/")
		switch {
		case strings.HasPrefix(name, refs.TaskPrefix) && isTask:
			if g.o.Live == nil || g.o.Live(task) {
				roots = append(roots, h)
			} else {
				dead[task] = append(dead[task], name)
			}
		case name == refs.Latest || strings.HasPrefix(name, refs.WorldPrefix):
			shared = append(shared, name)
			if name != refs.Latest {
				places = append(places, h)
			}
		default:
			roots = append(roots, h)
		}
	}
	if len(roots) > 0 { // there is something to restore
		roots = append(roots, places...)
	}
	if err := g.keep(ctx, roots); err != nil {
		return err
	}
	g.gone = make(map[string]gitfmt.Hash)
	for _, task := range g.newestFirst(dead, byName) {
		if err := g.tryTask(ctx, task, dead[task], byName); err != nil {
			return err
		}
	}
	slices.Sort(g.report.Dropped)
	slices.Sort(g.report.Kept)
	for _, name := range shared {
		needed := name != refs.Latest && len(g.seen) > 0 || len(g.report.Dropped) == 0
		if !needed && !g.seen[byName[name]] {
			g.gone[name] = gitfmt.Hash{} // only dropped tasks led to it
			continue
		}
		if err := g.keep(ctx, []gitfmt.Hash{byName[name]}); err != nil {
			return err
		}
	}
	return nil
}

// catchUp keeps what has come since the last look, and returns the bytes it
// takes. A ref that was to go and has moved stays. The store's lock is held.
func (g *collector) catchUp(ctx context.Context) (int64, error) {
	refs, named, err := g.look()
	if err != nil {
		return 0, err
	}
	for name, h := range refs {
		if g.refs[name] != h {
			delete(g.gone, name)
			named = append(named, h)
		}
	}
	g.refs = refs
	before := g.bytes
	err = g.keep(ctx, named)
	return g.bytes - before, err
}

// roots are the snapshots named by something else than refs.
func (g *collector) roots() ([]gitfmt.Hash, error) {
	roots, err := KeptRoots(g.s, g.o.Keep)
	if err != nil {
		return nil, err
	}
	more, err := g.unfinished()
	return append(roots, more...), err
}

// KeptRoots returns those of some snapshots that the store has.
func KeptRoots(s *objects.Store, keep []gitfmt.ID) ([]gitfmt.Hash, error) {
	var roots []gitfmt.Hash
	for _, id := range keep {
		h, ok := gitfmt.ParseHash(string(id))
		if !ok {
			return nil, fmt.Errorf("snapshot %q: %w: not a full id", id, refs.ErrUnknown)
		}
		if s.Has(h) {
			roots = append(roots, h)
		} // else it was lost before
	}
	return roots, nil
}

// newestFirst sorts tasks by their newest snapshot.
func (g *collector) newestFirst(dead map[string][]string, refs map[string]gitfmt.Hash) []string {
	newest := make(map[string]time.Time)
	var tasks []string
	for task, names := range dead {
		tasks = append(tasks, task)
		for _, name := range names {
			if c, err := g.s.Commit(refs[name]); err == nil && c.Time.After(newest[task]) {
				newest[task] = c.Time
			}
		}
	}
	slices.SortFunc(tasks, func(a, b string) int {
		return cmp.Or(newest[b].Compare(newest[a]), strings.Compare(a, b))
	})
	return tasks
}

// tryTask keeps a task that is gone if it fits, and otherwise drops it.
func (g *collector) tryTask(ctx context.Context, task string, names []string, refs map[string]gitfmt.Hash) error {
	var roots []gitfmt.Hash
	for _, name := range names {
		roots = append(roots, refs[name])
	}
	if g.o.MaxBytes > 0 {
		more := collector{s: g.s, seen: make(map[gitfmt.Hash]bool), but: g.seen}
		err := more.keep(ctx, roots)
		if err != nil && !errors.Is(err, gitfmt.ErrCorrupt) {
			return err
		}
		if err != nil || g.bytes+more.bytes > g.o.MaxBytes {
			for _, name := range names {
				g.gone[name] = gitfmt.Hash{}
			}
			g.report.Dropped = append(g.report.Dropped, task)
			return nil
		}
	}
	g.report.Kept = append(g.report.Kept, task)
	return g.keep(ctx, roots)
}

// keep adds everything some snapshots and their ancestors need.
func (g *collector) keep(ctx context.Context, roots []gitfmt.Hash) error {
	var found []*gitfmt.Commit
	for queue := roots; len(queue) > 0; {
		h := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if g.known(h) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c, err := g.s.Commit(h)
		if err != nil {
			return err
		}
		g.report.Snapshots++
		g.add(h)
		g.todo.commits = append(g.todo.commits, h)
		found = append(found, c)
		queue = append(queue[:len(queue):len(queue)], c.Parents...)
	}
	slices.SortStableFunc(found, func(a, b *gitfmt.Commit) int { return b.Time.Compare(a.Time) })
	for _, c := range found {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := g.tree(ctx, c.Tree); err != nil {
			return err
		}
	}
	return nil
}

func (g *collector) known(h gitfmt.Hash) bool { return g.seen[h] || g.but[h] }

// add takes an object for needed. It goes into the new pack, whichever has it now.
func (g *collector) add(h gitfmt.Hash) {
	g.seen[h] = true
	g.bytes += g.s.StoredBytes(h)
}

// tree adds a tree and all beneath it.
func (g *collector) tree(ctx context.Context, h gitfmt.Hash) error {
	return history.Walk(ctx, g.s, h, history.Visitor{
		Enter: func(h gitfmt.Hash) bool { return !g.known(h) },
		Tree: func(h gitfmt.Hash, path string) {
			g.add(h)
			g.todo.lines.add(gitfmt.TreeObject, path, h)
		},
		Blob: func(h gitfmt.Hash, path string) error {
			if !g.known(h) {
				g.add(h)
				g.todo.lines.add(gitfmt.BlobObject, path, h)
			}
			return nil
		},
	})
}

// Options say what a collection keeps. The zero value keeps every snapshot
// that any ref names.
type Options struct {
	// Live reports whether a task exists now; its snapshots are kept whatever
	// their size. It is asked after they were looked for, of tasks that may have
	// begun since GC was called. nil: all tasks exist.
	Live func(task string) bool
	// Keep are snapshots that something else than a ref names.
	Keep []gitfmt.ID
	// MaxBytes caps the store: of the tasks that do not exist any more, only
	// as many are kept, the newest first, as fit. 0: no cap, all are kept. What
	// the worlds are known at stays as long as there is a snapshot to restore.
	MaxBytes int64
	// DryRun finds out and writes nothing. Nobody waits for it.
	DryRun bool
	// LockWait is how long to wait for another process. Default DefaultLockWait.
	LockWait time.Duration
	// Hook is called at every durable step, as Options.Hook. At "gathered" the
	// store's lock is free.
	Hook func(point string)
}
