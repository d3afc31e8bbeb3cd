// Package gc collects a store (Run): one collection rewrites our packs as one, without objects
// that are no longer needed. It also verifies stores (Verify).
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

// A Report is the result of a collection or of its dry run.
type Report struct {
	Store  string `json:"store"`
	DryRun bool   `json:"dry_run,omitempty"`
	// BytesBefore and BytesAfter are the sizes of the packs on disk. After a dry run BytesAfter
	// is an upper bound.
	BytesBefore int64 `json:"bytes_before"`
	BytesAfter  int64 `json:"bytes_after"`
	Objects     int   `json:"objects"` // kept
	Snapshots   int   `json:"snapshots"`
	// Dropped are the tasks whose snapshots were removed, Kept those that no longer exist and
	// whose snapshots were kept. Never nil.
	Dropped []string `json:"dropped"`
	Kept    []string `json:"kept"`
	// Over: what must be kept is larger than MaxBytes.
	Over bool `json:"over,omitempty"`
}

// Run runs one collection. unfinished returns the snapshots that interrupted restores name.
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
		return Report{}, fmt.Errorf("gc %s: %w", store, g.explainMissing(err))
	}
	return g.report, nil
}

type collector struct {
	s          *objects.Store
	refStore   *refs.Store
	unfinished func() ([]gitfmt.Hash, error)
	o          Options
	report     Report

	refs  map[string]gitfmt.Hash // as last read
	named []gitfmt.Hash          // the snapshots that journals and o name, as last read
	old   []*objects.Pack        // our packs, listed before the refs: a later pack may lack its ref
	gone  map[string]gitfmt.Hash // refs to be removed, with zero ids

	seen  map[gitfmt.Hash]bool // objects that are kept
	but   map[gitfmt.Hash]bool // objects that are not counted
	bytes int64                // their present size on disk
	todo  batch                // those not yet written
}

// batch is the objects to be written into one pack.
type batch struct {
	commits []gitfmt.Hash
	lines   map[line][]gitfmt.Hash
}

func (b *batch) add(l line, h gitfmt.Hash) {
	if b.lines == nil {
		b.lines = make(map[line][]gitfmt.Hash)
	}
	b.lines[l] = append(b.lines[l], h)
}

// locked runs one part of the collection under the store's lock.
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
		g.refs, g.named, err = g.readRoots()
	} else {
		err = g.locked(ctx, func() error {
			g.s.Sweep()
			g.refStore.Sweep()
			// A killed collection left it: Run holds the lock that admits one collection at a time.
			if err := errors.Join(os.RemoveAll(g.s.CollectDir()), os.Mkdir(g.s.CollectDir(), 0o700)); err != nil {
				return err
			}
			g.refs, g.named, err = g.readRoots()
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

// readRoots reads the packs, the refs and the other roots. The caller holds the store's lock, except
// in a dry run.
func (g *collector) readRoots() (refs map[string]gitfmt.Hash, named []gitfmt.Hash, err error) {
	if err := refuseGitWork(g.s.Dir); err != nil {
		return nil, nil, err
	}
	if err := g.s.Refresh(); err != nil {
		return nil, nil, err
	}
	// Packs before refs: git push shows its pack, then sets the ref, and keeps the pack until then.
	if g.old, err = g.s.OurPacks(); err != nil {
		return nil, nil, err
	}
	if refs, err = g.refStore.All(); err != nil {
		return nil, nil, err
	}
	named, err = g.roots()
	return refs, named, err
}

// refuseGitWork refuses a store that a user's git works in: its HEADs, indexes and reflogs may name
// objects that no ref reaches.
func refuseGitWork(store string) error {
	for _, name := range []string{"worktrees", "logs", "index"} {
		path := filepath.Join(store, name)
		if there, err := fsys.Exists(path); err != nil {
			return err
		} else if there {
			return fmt.Errorf("%w: git works in the store, and %s may name objects that would be removed; "+
				"remove it first", gitfmt.ErrRefused, path)
		}
	}
	head, err := os.ReadFile(filepath.Join(store, "HEAD"))
	if err == nil && !bytes.HasPrefix(head, []byte("ref: ")) {
		err = fmt.Errorf("%w: HEAD names a commit; 'git --git-dir=%s symbolic-ref HEAD %s' restores it",
			gitfmt.ErrRefused, store, refs.Latest)
	}
	return err
}

// explainMissing adds to an error the ref that reaches the missing object, and the remedy.
func (g *collector) explainMissing(err error) error {
	var m *gitfmt.MissingObjectError
	if !errors.As(err, &m) || fsys.Exhausted(m.Err) {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(g.refs)) {
		if g.refs[name].String() != m.Object {
			continue
		}
		if refs.IsOurs(name) {
			return fmt.Errorf("%w; %s names it; restore it from a backup of %s; nothing is collected until then",
				err, name, g.s.Dir)
		}
		return fmt.Errorf("%w; %s names it, which is not a snapshot in a pack; "+
			"'git --git-dir=%s update-ref -d %s' removes that ref", err, name, g.s.Dir, name)
	}
	return fmt.Errorf("%w; 'git --git-dir=%s repack -d' packs your own objects", err, g.s.Dir)
}

// choose selects what is kept: first what must be, then the tasks that no longer exist, the
// newest first, while they fit.
func (g *collector) choose(ctx context.Context) error {
	byName, roots := g.refs, slices.Clone(g.named)
	dead := make(map[string][]string) // task → its refs
	var shared []string               // refs of worlds, and the latest; they belong to the snapshot's task
	var places []gitfmt.Hash          // targets of worlds' refs, by which a restore recognises a user's edits
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
	if err := g.addReachable(ctx, roots); err != nil {
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
		// A world's ref is needed while anything can be restored, because a restore finds the user's edits by it.
		needed := name != refs.Latest && len(g.seen) > 0 || len(g.report.Dropped) == 0
		if !needed && !g.seen[byName[name]] {
			g.gone[name] = gitfmt.Hash{} // only dropped tasks reached it
			continue
		}
		if err := g.addReachable(ctx, []gitfmt.Hash{byName[name]}); err != nil {
			return err
		}
	}
	return nil
}

// catchUp keeps what was added since the last look. A ref to be removed that has moved stays.
// The caller holds the store's lock.
func (g *collector) catchUp(ctx context.Context) error {
	refs, named, err := g.readRoots()
	if err != nil {
		return err
	}
	for name, h := range refs {
		if g.refs[name] != h {
			delete(g.gone, name)
			named = append(named, h)
		}
	}
	g.refs = refs
	return g.addReachable(ctx, named)
}

// roots returns the snapshots that something else than a ref names.
func (g *collector) roots() ([]gitfmt.Hash, error) {
	roots, err := KeptRoots(g.s, g.o.Keep)
	if err != nil {
		return nil, err
	}
	more, err := g.unfinished()
	return append(roots, more...), err
}

// KeptRoots returns those of the given snapshots that the store has.
func KeptRoots(s *objects.Store, keep []gitfmt.ID) ([]gitfmt.Hash, error) {
	var roots []gitfmt.Hash
	for _, id := range keep {
		h, ok := gitfmt.ParseHash(string(id))
		if !ok {
			return nil, fmt.Errorf("snapshot %q: %w: not a full id", id, refs.ErrUnknown)
		}
		if s.Has(h) {
			roots = append(roots, h)
		} // otherwise it was lost before
	}
	return roots, nil
}

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

// tryTask keeps a task that no longer exists if it fits, and otherwise drops it.
func (g *collector) tryTask(ctx context.Context, task string, names []string, refs map[string]gitfmt.Hash) error {
	var roots []gitfmt.Hash
	for _, name := range names {
		roots = append(roots, refs[name])
	}
	if g.o.MaxBytes > 0 {
		more := collector{s: g.s, seen: make(map[gitfmt.Hash]bool), but: g.seen}
		err := more.addReachable(ctx, roots)
		if err != nil && !errors.Is(err, gitfmt.ErrCorrupt) {
			return err
		}
		// Under a cap, damage in a task that no longer exists drops the task and does not stop the collection.
		if err != nil || g.bytes+more.bytes > g.o.MaxBytes {
			for _, name := range names {
				g.gone[name] = gitfmt.Hash{}
			}
			g.report.Dropped = append(g.report.Dropped, task)
			return nil
		}
	}
	g.report.Kept = append(g.report.Kept, task)
	return g.addReachable(ctx, roots)
}

// addReachable adds everything that some snapshots and their ancestors need.
func (g *collector) addReachable(ctx context.Context, roots []gitfmt.Hash) error {
	var found []*gitfmt.Commit
	for queue := roots; len(queue) > 0; {
		h := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if g.isKept(h) {
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
		// The array is the caller's: without room in it, append copies, and the caller's roots stay as they are.
		queue = append(queue[:len(queue):len(queue)], c.Parents...)
	}
	// The newest versions of a path come first, since a line stores its first version whole.
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

func (g *collector) isKept(h gitfmt.Hash) bool { return g.seen[h] || g.but[h] }

// add marks an object as needed, so that it is written into the new pack.
func (g *collector) add(h gitfmt.Hash) {
	g.seen[h] = true
	_, it := g.s.Locate(h)
	g.bytes += it.Size
}

func (g *collector) tree(ctx context.Context, h gitfmt.Hash) error {
	return history.Walk(ctx, g.s, h, history.Visitor{
		Enter: func(h gitfmt.Hash) bool { return !g.isKept(h) },
		Tree: func(h gitfmt.Hash, path string) {
			g.add(h)
			g.todo.add(line{path, gitfmt.TreeObject}, h)
		},
		Blob: func(h gitfmt.Hash, path string) error {
			if !g.isKept(h) {
				g.add(h)
				g.todo.add(line{path, gitfmt.BlobObject}, h)
			}
			return nil
		},
	})
}

// Options select what a collection keeps. The zero value keeps every snapshot that a ref names.
type Options struct {
	// Live reports whether a task exists; its snapshots are kept whatever their size. It is
	// called after the snapshots were listed, also for tasks that began after GC was called. If
	// nil, all tasks exist.
	Live func(task string) bool
	// Keep are snapshots that something else than a ref names.
	Keep []gitfmt.ID
	// MaxBytes caps the store: of the tasks that no longer exist, only as many are kept, the
	// newest first, as fit. 0: no cap, all are kept. The snapshots that worlds are known at are
	// kept as long as there is a snapshot to restore.
	MaxBytes int64
	// DryRun computes the report and writes nothing. It takes no lock.
	DryRun bool
	// LockWait is how long to wait for another process. Default DefaultLockWait.
	LockWait time.Duration
	// Hook is called at every durable step, as Options.Hook of a World. At "gathered" the
	// store's lock is free.
	Hook func(point string)
}
