package worldstate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/refs"
)

// Export writes what a snapshot of a store has and its parent does not as a git pack into the directory into,
// and returns the path of the pack's index, beside which the pack lies. Of a snapshot without a parent it
// writes everything. Neither the store nor its directory is changed.
func Export(ctx context.Context, store string, id ID, into string) (index string, err error) {
	h, ok := gitfmt.ParseHash(string(id))
	if !ok {
		return "", fmt.Errorf("export snapshot %q: %w", id, ErrUnknown)
	}
	from := objects.New(store)
	defer from.Close()
	if err := from.Refresh(); err != nil {
		return "", fmt.Errorf("export snapshot %s: %w", id, err)
	}
	c, err := from.Commit(h)
	if err != nil {
		return "", fmt.Errorf("export snapshot: %w", err)
	}
	e := exporter{ctx: ctx, from: from, out: objects.NewWriter(into, func(string) {}, new(objects.Pool))}
	defer e.out.Abort()
	var base gitfmt.Hash
	if len(c.Parents) > 0 {
		parent, err := from.Commit(c.Parents[0])
		if err != nil {
			return "", fmt.Errorf("export snapshot %s: %w", id, err)
		}
		base = parent.Tree
	}
	if err = e.copy(gitfmt.CommitObject, h, ""); err == nil {
		err = e.tree(c.Tree, base, "")
	}
	if err != nil {
		return "", fmt.Errorf("export snapshot %s: %w", id, err)
	}
	return e.out.Finish()
}

// exporter copies objects of one store into a pack.
type exporter struct {
	ctx  context.Context
	from *objects.Store
	out  *objects.Writer
}

func (e *exporter) copy(t gitfmt.ObjectType, h gitfmt.Hash, path string) error {
	_, err := e.from.Copy(e.out, t, h, path)
	return err
}

// tree copies a tree and what it has and base, which may be zero, does not have at the same place.
func (e *exporter) tree(h, base gitfmt.Hash, path string) error {
	if h == base {
		return nil
	}
	if err := e.ctx.Err(); err != nil {
		return err
	}
	items, err := e.from.Tree(h, path)
	if err != nil {
		return err
	}
	have := make(map[string]gitfmt.TreeItem)
	if !base.IsZero() {
		before, err := e.from.Tree(base, path)
		if err != nil {
			return err
		}
		for _, it := range before {
			have[it.Name] = it
		}
	}
	for _, it := range items {
		was, at := have[it.Name], filepath.Join(path, it.Name)
		switch {
		case it.Mode == gitfmt.TreeMode:
			if was.Mode != gitfmt.TreeMode { // a file had the name, so there is no tree to compare with
				was.Hash = gitfmt.Hash{}
			}
			err = e.tree(it.Hash, was.Hash, at)
		// A gitlink names a commit of a user's repository, which is not in the store.
		case it.Hash != was.Hash && it.Mode != gitfmt.GitlinkMode:
			err = e.copy(gitfmt.BlobObject, it.Hash, at)
		}
		if err != nil {
			return err
		}
	}
	return e.copy(gitfmt.TreeObject, h, path)
}

// Import adds snapshots to a store, which it creates if it is absent. Their objects are in the packs of the
// directory packs; ids are in the order in which they were saved. Each gets the name of its step as a save gives
// it; one without a step is kept for task.
func Import(ctx context.Context, store, task, packs string, ids []ID) error {
	w := &World{store: store, objects: objects.New(store), refs: &refs.Store{Dir: store}}
	w.lock, w.opts.LockWait = fsys.NewLock(store, fsys.WriterLock), DefaultLockWait
	w.opts.Hook = func(string) {}
	defer func() { w.objects.Close(); w.lock.Close() }()
	if err := errors.Join(os.MkdirAll(filepath.Join(store, fsys.StateDir), 0o700), w.create()); err != nil {
		return fmt.Errorf("import snapshots: %w", err)
	}
	end, err := w.begin(ctx, changing)
	if err != nil {
		return err
	}
	defer end()
	// The objects come before the refs: a ref must not name a snapshot that the store lacks.
	if err := w.objects.Absorb(packs, &w.packs); err != nil {
		return fmt.Errorf("import snapshots: %w", err)
	}
	for _, id := range ids {
		if err := w.name(id, task); err != nil {
			return fmt.Errorf("import snapshots: %w", err)
		}
	}
	return w.objects.Consolidate(ctx, &w.packs, w.opts.Hook)
}

// name sets the refs of an imported snapshot.
func (w *World) name(id ID, task string) error {
	c, err := w.byID(id)
	if err != nil {
		return err
	}
	if c.Step == "" {
		return w.refs.Update(map[string]gitfmt.Hash{beforeRef(task, c): c.Id})
	}
	var parent *gitfmt.Commit
	if len(c.Parents) > 0 {
		if parent, err = w.objects.Commit(c.Parents[0]); err != nil {
			return err
		}
	}
	w.opts.Task, _, _ = strings.Cut(c.Step, "@") // moveTip removes refs of this task only
	set := make(map[string]gitfmt.Hash)
	if err := w.moveTip(set, parent, c); err != nil {
		return err
	}
	return w.refs.Update(set)
}
