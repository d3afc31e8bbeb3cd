package worldstate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/refs"
	"anamnesis/worldstate/internal/scan"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/internal/usergit"
)

// SaveOptions are the options of a save.
type SaveOptions struct {
	// Message is for users: its first line is what `git log --oneline` shows.
	Message string
	// Parent is the snapshot of the parent step; "" for the first one.
	Parent ID
	// Ref is the step's name. A new snapshot records it in a trailer, and
	// refs/anamnesis/<task>/<Ref> names the snapshot until a later one is saved from it. If
	// nothing has changed since Parent, the parent keeps its own name. "": no name.
	Ref string
	// Trailers are appended to the message, one line each: a key, which is a word that does not
	// begin with Anamnesis-, and a value without newlines.
	Trailers [][2]string

	// beforeRestore: a new snapshot gets a ref of its own, and the snapshot that the world is
	// known at does not change, since the restore may still be refused.
	beforeRestore bool
}

// A Snapshot is a saved world.
type Snapshot struct {
	ID   ID     `json:"id"`
	Tree string `json:"tree"` // the world id: equal trees are equal worlds
	// Complete is false if something could not be read; Skipped lists it.
	Complete bool `json:"complete"`
	// Skipped lists paths whose bytes are not in the snapshot: FIFOs, sockets and devices, and
	// what could not be read. Never nil.
	Skipped []Skip `json:"skipped"`
	// Notes lists paths that are stored without some attribute (setuid bits), and git files
	// that could not be read.
	Notes []Skip `json:"notes,omitempty"`
	// ParentLost: the store has lost Parent, as this line says, and the snapshot has no parent.
	ParentLost string `json:"parent_lost,omitempty"`
	Files      int    `json:"files"` // files and links stored
	// Changed counts the files and links that differ from the parent; without a parent, all.
	Changed      int      `json:"changed"`
	ChangedPaths []string `json:"-"`
	// IgnoredGone are ignored paths, the topmost ones, that were there at the last save of this
	// process and are gone, sorted.
	IgnoredGone []string `json:"-"`
}

// Save stores the present world and returns when that is durable. If neither the tree nor any
// other recorded fact differs from Parent, no new snapshot is made: the parent's id is returned
// and Changed is 0. A file that cannot be read makes the snapshot incomplete; if the store has
// lost Parent, the snapshot has none (Snapshot.ParentLost). Neither is an error. Errors:
// ErrUnknown for an invalid Parent, ErrUnfinished, ErrLocked, ErrFull, or the disk's.
func (w *World) Save(ctx context.Context, o SaveOptions) (Snapshot, error) {
	end, err := w.begin(ctx, changing)
	if err != nil {
		return Snapshot{}, err
	}
	defer end()
	snap, _, err := w.saveLocked(ctx, o)
	return snap, err
}

// SaveNext is Save with the snapshot that this world was last known at as Parent and the next
// free number of the task as Ref, under one lock. An unchanged world uses no number.
func (w *World) SaveNext(ctx context.Context, message string) (Snapshot, error) {
	end, err := w.begin(ctx, changing)
	if err != nil {
		return Snapshot{}, err
	}
	defer end()
	o, err := w.nextOptions(message)
	if err != nil {
		return Snapshot{}, err
	}
	snap, _, err := w.saveLocked(ctx, o)
	return snap, err
}

// nextOptions returns the options of a save with the next number.
func (w *World) nextOptions(message string) (SaveOptions, error) {
	byName, err := w.refs.All()
	if err != nil {
		return SaveOptions{}, err
	}
	o := SaveOptions{Message: message}
	if h := w.headOf(byName); !h.IsZero() {
		o.Parent = ID(h.String())
	}
	last := 0
	for ref, h := range byName {
		if step, own := strings.CutPrefix(refs.Step(ref), w.opts.Task+"@"); own {
			last = max(last, w.lastNumber(step, h))
		}
	}
	o.Ref = strconv.Itoa(last + 1)
	return o, nil
}

// lastNumber returns the highest number of this World's task among a snapshot, which is named
// by step, and its ancestors. Numbers increase along the line, so that it is the first found.
func (w *World) lastNumber(step string, h gitfmt.Hash) int {
	for {
		if n, err := strconv.Atoi(step); err == nil {
			return n
		}
		c, err := w.objects.Commit(h)
		if err != nil || len(c.Parents) == 0 {
			return 0
		}
		h = c.Parents[0]
		if c, err = w.objects.Commit(h); err == nil {
			step = strings.TrimPrefix(c.Step, w.opts.Task+"@")
		}
	}
}

// saveLocked is Save with the lock held; it also returns the scan.
func (w *World) saveLocked(ctx context.Context, o SaveOptions) (Snapshot, *scan.Scanned, error) {
	if err := w.checkNoJournal(); err != nil {
		return Snapshot{}, nil, err
	}
	if o.Ref != "" {
		if err := checkName("ref", o.Ref); err != nil {
			return Snapshot{}, nil, fmt.Errorf("save: %w", err)
		}
	}
	root, err := w.openRoot()
	if err != nil {
		return Snapshot{}, nil, err
	}
	defer root.Close()
	pack := objects.NewWriter(w.objects.PackDir(), w.opts.Hook, &w.packs)
	defer pack.Abort()
	sc, err := w.scanDir(ctx, root, pack)
	if err != nil {
		return Snapshot{}, nil, err
	}
	parent, lost, err := w.parent(o.Parent)
	if err != nil {
		return Snapshot{}, nil, fmt.Errorf("save: parent: %w", err)
	}
	snap, err := w.record(sc, pack, parent, o)
	if err != nil {
		return Snapshot{}, nil, err
	}
	snap.ParentLost = lost
	snap.IgnoredGone = w.missingIgnored(sc)
	if err := w.track.Learn(sc); err != nil { // the snapshot is saved; only the next process is slower
		why := "stat cache not written: " + usergit.Reason(err)
		snap.Notes = append(snap.Notes, Skip{Path: w.track.Cache, Reason: why})
	}
	if err := w.objects.Consolidate(ctx, &w.packs, w.opts.Hook); err != nil { // the same
		snap.Notes = append(snap.Notes, Skip{Path: w.store, Reason: "packs not merged: " + usergit.Reason(err)})
	}
	return snap, sc, nil
}

// missingIgnored returns the topmost ignored paths of the last scan that a save of this process
// made and that are gone since.
func (w *World) missingIgnored(sc *scan.Scanned) (gone []string) {
	now := make(map[string]bool)
	for _, r := range sc.Ignored() {
		now[r.Path] = true
	}
	for path := range w.ignoredWas {
		if _, err := os.Lstat(filepath.Join(w.dir, path)); !now[path] && errors.Is(err, fs.ErrNotExist) {
			gone = append(gone, path)
		}
	}
	w.ignoredWas = now
	slices.Sort(gone)
	return gone
}

// parent returns the commit of an id, nil for "". If the store has lost it or cannot list its
// files, lost describes that and the commit is nil.
func (w *World) parent(id ID) (c *gitfmt.Commit, lost string, err error) {
	if id == "" {
		return nil, "", nil
	}
	if h, ok := gitfmt.ParseHash(string(id)); ok && w.saved != nil && w.saved.Id == h && w.objects.Has(h) {
		return w.saved, "", nil
	}
	if c, err = w.byID(id); err == nil {
		_, err = w.tree(c.Tree)
	}
	if isLost(id, err) {
		return nil, lostLine(id, err), nil
	}
	return c, "", err
}

// record makes a snapshot of a scan: trees, commit, pack, refs, in this order, each durable
// before the next.
func (w *World) record(sc *scan.Scanned, pack *objects.Writer, parent *gitfmt.Commit, o SaveOptions) (Snapshot, error) {
	tree, err := w.storeTrees(sc.Listing, pack)
	if err != nil {
		return Snapshot{}, fmt.Errorf("save trees: %w", err)
	}
	c := &gitfmt.Commit{
		Tree: tree, Time: w.opts.Now(), Trailers: o.Trailers,
		World: w.key, Partial: sc.Partial, Skips: sc.Skips, Rules: sc.Frozen, Secrets: sc.Secrets,
		Unstored: sc.Unstored,
	}
	if o.Ref != "" {
		c.Step = w.opts.Task + "@" + o.Ref
	}
	snap := Snapshot{Tree: tree.String(), Complete: !sc.Partial, Skipped: sc.Skips, Notes: sc.Notes, Files: sc.Files()}
	if snap.Skipped == nil {
		snap.Skipped = []Skip{}
	}
	if parent != nil {
		c.Parents = []gitfmt.Hash{parent.Id}
	}
	if parent != nil && parent.Tree == tree && parent.SameFacts(c) {
		c.Id = parent.Id
	} else {
		if snap.ChangedPaths, err = w.changedSince(parent, sc.Listing); err != nil {
			return Snapshot{}, err
		}
		snap.Changed = len(snap.ChangedPaths)
		c.Message = gitfmt.CleanMessage(o.Message)
		if err := addCommit(pack, c); err != nil {
			return Snapshot{}, fmt.Errorf("save commit: %w", err)
		}
	}
	if err := w.objects.Publish(pack, w.opts.SizeLimitBytes); err != nil {
		return Snapshot{}, err
	}
	set := map[string]gitfmt.Hash{refs.WorldPrefix + w.key: c.Id, refs.Latest: c.Id}
	if o.beforeRestore {
		if parent != nil {
			// Until the restore is done, the world is known at its parent.
			clear(set)
		}
		if parent == nil || c.Id != parent.Id {
			set[beforeRef(w.opts.Task, c)] = c.Id // so that a collection keeps it
		}
	}
	if o.Ref != "" {
		if err := w.moveTip(set, parent, c); err != nil {
			return Snapshot{}, err
		}
	}
	if err := w.refs.Update(set); err != nil {
		return Snapshot{}, err
	}
	w.opts.Hook("refs-written")
	if _, cached := w.listings[tree]; !cached {
		remember(&w.listings, tree, sc.Listing)
	}
	w.saved = c
	if parent != nil && c.Id == parent.Id { // c lacks the parent's message and trailers
		w.saved = parent
	}
	snap.ID = ID(c.Id.String())
	return snap, nil
}

// beforeRef returns the ref of a snapshot that was saved before a restore.
func beforeRef(task string, c *gitfmt.Commit) string {
	return refs.OfStep(task + "@before-" + c.Id.String()[:12])
}

// addCommit writes a snapshot's commit and sets its id.
func addCommit(pack *objects.Writer, c *gitfmt.Commit) error {
	data := c.Encode()
	c.Id = gitfmt.HashObject(gitfmt.CommitObject, data)
	return pack.Add(c.Id, gitfmt.CommitObject, data)
}

// moveTip adds to an update the ref of a step and removes that of the parent, which is
// reachable from the new snapshot; its trailer records its name. A step that changed nothing
// gets no ref, unless a ref of its name, left by a lost stream, names another snapshot.
func (w *World) moveTip(set map[string]gitfmt.Hash, parent, c *gitfmt.Commit) error {
	byName, err := w.refs.All()
	if err != nil {
		return err
	}
	ref := refs.OfStep(c.Step)
	if parent == nil || c.Id != parent.Id || !byName[ref].IsZero() {
		set[ref] = c.Id
	}
	if parent == nil || c.Id == parent.Id || !strings.HasPrefix(parent.Step, w.opts.Task+"@") {
		return nil
	}
	if was := refs.OfStep(parent.Step); was != ref && byName[was] == parent.Id {
		set[was] = gitfmt.Hash{}
	}
	return nil
}

// storeTrees returns a listing's world id and stores the trees that the store lacks.
func (w *World) storeTrees(l *tree.Listing, pack *objects.Writer) (gitfmt.Hash, error) {
	if tree, known := w.recentID(l); known && w.objects.Owns(tree) {
		return tree, nil
	}
	return tree.Build(l, func(h gitfmt.Hash, t gitfmt.ObjectType, data []byte) error {
		if w.objects.Owns(h) {
			return nil
		}
		return pack.Add(h, t, data)
	})
}

// changedSince returns the files and links that differ from the parent.
func (w *World) changedSince(parent *gitfmt.Commit, now *tree.Listing) ([]string, error) {
	before := tree.Empty()
	if parent != nil {
		var err error
		if before, err = w.tree(parent.Tree); err != nil {
			return nil, fmt.Errorf("save: parent %s: %w", parent.Id, err)
		}
	}
	return tree.ChangedPaths(before, now), nil
}
