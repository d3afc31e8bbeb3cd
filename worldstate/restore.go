package worldstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/plan"
	"anamnesis/worldstate/internal/refs"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/tree"
)

// A Result is the result of a restore.
type Result struct {
	Source ID `json:"source"` // the saved world before the restore
	Target ID `json:"target"`
	// Written and Deleted are the plan's lists, without paths kept during the restore. Never
	// nil.
	Written []string `json:"written"`
	Deleted []string `json:"deleted"`
	Kept    []Skip   `json:"kept"` // paths that do not match the target, and why
	// LostAttributes are written files that lack something that no snapshot holds and that they had
	// before the restore, or when the target was saved: special mode bits, hard links, extended
	// attributes. Of files that did not exist, the attributes are not known.
	LostAttributes []Skip `json:"lost_attributes,omitempty"`
	// Unchanged is the plan's.
	Unchanged []Skip `json:"unchanged,omitempty"`
	Tree      string `json:"tree"` // the world id afterwards
	// Exact reports whether the world now equals the target in every path.
	Exact    bool   `json:"exact"`
	BaseLost string `json:"base_lost,omitempty"` // as the plan's
}

// RestoreOptions are the options of RestoreTo.
type RestoreOptions struct {
	PlanOptions
	// PlanHash, if set, must be the hash of the resulting plan.
	PlanHash string
	// Message is the first line of the snapshot of the present world.
	Message string
	// Intend, if not nil, is called with a plan that changes something, when both its ends are
	// durable and before the first change. Its error ends the restore. It must not use the
	// World.
	Intend func(Plan) error
}

// Restore carries out a plan. It saves the present world (without a new snapshot if one holds
// it already) and computes the plan again; a different result is ErrStale. Both ends are
// durable and read back before the first change. A failure partway is rolled back; see
// RestoreError. After a kill, Recover ends at the target or the source. A path that another
// program changes during the restore is kept and listed in Kept.
//
// It returns when every path is as planned and was checked again. Making that durable continues
// in the background: every other operation waits for it, and so does Sync, which reports
// whether it succeeded. Until then the journal exists, so that after a power failure Recover
// ends at the target.
func (w *World) Restore(ctx context.Context, p Plan) (Result, error) {
	if p.Hash == "" {
		return Result{}, fmt.Errorf("restore: %w: the plan was not made by Plan", ErrStale)
	}
	o := RestoreOptions{PlanOptions: p.Options, PlanHash: p.Hash}
	o.Base = p.Base
	return w.RestoreTo(ctx, p.Target, o)
}

// RestoreTo saves the present world, plans and restores under one lock. Changes since the
// snapshot that the world was last known at are kept, unless OverwriteEdits is set; they are
// always in the snapshot Result.Source. It returns when Restore does.
func (w *World) RestoreTo(ctx context.Context, target ID, o RestoreOptions) (Result, error) {
	end, err := w.begin(ctx, changing)
	if err != nil {
		return Result{}, err
	}
	res, settle, err := w.restoreLocked(ctx, target, o)
	if err != nil || settle == nil {
		end()
		return res, err
	}
	go func() { // which has the lock from now on
		defer end()
		if err := settle(); err != nil {
			w.unsettled = fmt.Errorf("restore %s: make it durable: %w", target, w.unfinished(err))
		}
	}()
	return res, nil
}

// Sync waits until the last restore is durable. An error means that this failed: the journal
// still exists, and Recover must be called.
func (w *World) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unsettled
}

func (w *World) effects() restore.Effects {
	return restore.Effects{Objects: w.objects, Hook: w.opts.Hook, Before: w.track.Before}
}

func (w *World) restoreLocked(ctx context.Context, target ID, o RestoreOptions) (
	res Result, settle func() error, err error,
) {
	c, err := w.byID(target)
	if err != nil {
		return res, nil, fmt.Errorf("restore: %w", err)
	}
	head, err := w.head()
	if err != nil {
		return res, nil, err
	}
	save := SaveOptions{Message: cmp.Or(o.Message, "before restoring "+gitfmt.Short(target)), beforeRestore: true}
	if !head.IsZero() {
		save.Parent = ID(head.String())
		o.Base = cmp.Or(o.Base, save.Parent)
	}
	snap, sc, err := w.saveLocked(ctx, save)
	if err != nil {
		return res, nil, fmt.Errorf("restore: save the present world first: %w", err)
	}
	source, _ := gitfmt.ParseHash(string(snap.ID))
	root, err := w.openRoot()
	if err != nil {
		return res, nil, err
	}
	defer func() {
		if settle == nil {
			root.Close()
		}
	}()
	// The plan is made from the very scan that was saved: all that it would change is in the snapshot.
	p, err := w.planFrom(ctx, root.Fd, sc, target, o.PlanOptions)
	if err != nil {
		return res, nil, err
	}
	if o.PlanHash != "" && p.Hash != o.PlanHash {
		return res, nil, fmt.Errorf("restore: %w: the world or its snapshots changed since plan %s (now %s); "+
			"plan again", ErrStale, o.PlanHash, p.Hash)
	}
	p.Source = snap.ID
	if p.Lost { // later changes count as edits
		p.Base = snap.ID
	}
	res, settle, err = w.apply(ctx, root, &p, sc.Listing, c, source, o.Intend)
	res.BaseLost = p.BaseLost
	return res, settle, err
}

// apply carries out a plan under the journal, after intend has returned. settle makes it
// durable and closes root; it is nil if nothing is left to do.
func (w *World) apply(
	ctx context.Context, root *fsys.Root, p *Plan, now *tree.Listing, target *gitfmt.Commit, source gitfmt.Hash,
	intend func(Plan) error,
) (res Result, settle func() error, err error) {
	w.opts.Hook("planned")
	// No file moves unless the way back can be read.
	if err := restore.ProbeAll(ctx, w.objects, p.Actions, restore.BeforeOf); err != nil {
		return res, nil, fmt.Errorf("restore: the present world is not saved: %w", err)
	}
	head, err := w.headAfter(p, target, source)
	if err != nil {
		return res, nil, err
	}
	j := &restore.Journal{
		World: w.journal.World, Source: source, Target: target.Id, Head: head,
		Nonce: fsys.NewNonce(), Boot: fsys.BootID(), Actions: p.Actions,
	}
	if len(j.Actions) == 0 { // nothing moves, so nothing needs a journal; the ref may still move
		if res, err = w.result(ctx, root, j, p, target, nil); err == nil {
			err = w.finish(j)
		}
		return res, nil, err
	}
	j.Actions = restore.WithReadOnlyDirs(p.Actions, now)
	// The caller's log names the restore before the journal does: recovery asks the log what was meant.
	if intend != nil {
		if err := intend(*p); err != nil {
			return res, nil, err
		}
	}
	w.opts.Hook("journal before")
	if err := w.journal.Write(j); err != nil {
		return res, nil, fmt.Errorf("restore: %w", err)
	}
	w.opts.Hook("journal after")
	x := restore.New(w.effects(), root.Fd, j)
	if err = x.Run(j.Actions); err == nil {
		err = x.Compare(j.Actions)
	}
	if err != nil {
		return res, nil, w.rollBack(root, j, err)
	}
	w.opts.Hook("compared")
	if res, err = w.result(ctx, root, j, p, target, x.Kept); err != nil {
		return res, nil, err
	}
	x.ListMissing(j.Actions, target.Unstored)
	res.LostAttributes = x.Lost
	// The files are in place; making them durable may go on beside the caller's next step.
	return res, func() error {
		defer root.Close()
		if err := x.Sync(); err != nil {
			return err
		}
		w.opts.Hook("synced")
		return w.finish(j)
	}, nil
}

func (w *World) rollBack(root *fsys.Root, j *restore.Journal, cause error) error {
	var re *RestoreError
	if !errors.As(cause, &re) {
		re = &RestoreError{Path: w.dir, Err: cause}
	}
	x, err := restore.Undo(w.effects(), root.Fd, j)
	if err == nil {
		err = x.Sync()
	}
	if err == nil {
		err = w.journal.Remove()
	}
	if err != nil {
		re.Err, re.Stuck = w.unfinished(fmt.Errorf("%w; roll back: %w", re.Err, err)), true
		return re
	}
	re.RolledBack = true
	return re
}

// headAfter returns the snapshot that the world will be known at after a plan: the target of a
// whole restore. For a subset it creates one, which is the base with the restored paths
// changed, so that a user's edits elsewhere still count as edits.
func (w *World) headAfter(p *Plan, target *gitfmt.Commit, source gitfmt.Hash) (gitfmt.Hash, error) {
	if len(p.Options.Paths) == 0 {
		return target.Id, nil
	}
	// Nothing moves, or there was no earlier snapshot: later edits count from the one that was just saved.
	if len(p.Actions) == 0 || p.Base == "" {
		return source, nil
	}
	b, err := w.byID(p.Base)
	if err != nil {
		return gitfmt.Hash{}, err
	}
	from, err := w.tree(b.Tree)
	if err != nil {
		return gitfmt.Hash{}, err
	}
	want, err := w.tree(target.Tree)
	if err != nil {
		return gitfmt.Hash{}, err
	}
	list := restore.Overlay(from, want, p.Actions)
	pack := objects.NewWriter(w.objects.PackDir(), w.opts.Hook, &w.packs)
	defer pack.Abort()
	tree, err := w.storeTrees(list, pack)
	if err != nil {
		return gitfmt.Hash{}, fmt.Errorf("restore: %w", err)
	}
	c := *b
	c.Tree, c.Parents, c.Time, c.Trailers = tree, []gitfmt.Hash{source}, w.opts.Now(), nil
	// A path may have been restored as a secret of the target, and must stay one.
	c.Secrets = slices.Compact(slices.Sorted(slices.Values(slices.Concat(b.Secrets, target.Secrets))))
	c.Message = fmt.Sprintf("base after restoring %d paths of %s", len(p.Actions), gitfmt.Short(p.Target))
	if err := addCommit(pack, &c); err != nil {
		return gitfmt.Hash{}, fmt.Errorf("restore: %w", err)
	}
	return c.Id, w.objects.Publish(pack, w.opts.SizeLimitBytes)
}

func (w *World) result(
	ctx context.Context, root *fsys.Root, j *restore.Journal, p *Plan, target *gitfmt.Commit, raced []Skip,
) (Result, error) {
	res := Result{
		Source: ID(j.Source.String()), Target: ID(j.Target.String()), Unchanged: p.Unchanged,
		Written: []string{}, Deleted: []string{}, Kept: append(append([]Skip{}, p.Keep...), raced...),
	}
	stayed := make(map[string]bool, len(raced))
	for _, s := range raced {
		stayed[s.Path] = true
	}
	for _, a := range p.Actions {
		switch {
		case stayed[a.Path]:
		case a.After.Absent():
			res.Deleted = append(res.Deleted, plan.ListedPath(a.Path, a.Before))
		default:
			res.Written = append(res.Written, plan.ListedPath(a.Path, a.After))
		}
	}
	tree, err := w.treeAfter(ctx, root, p, target, len(res.Kept) == 0)
	if err != nil {
		return Result{}, err
	}
	res.Tree, res.Exact = tree.String(), tree == target.Tree
	return res, nil
}

// finish moves the world's ref after a durable restore and then removes the journal.
func (w *World) finish(j *restore.Journal) error {
	if err := w.refs.Update(map[string]gitfmt.Hash{refs.WorldPrefix + w.key: j.Head}); err != nil {
		return err
	}
	w.opts.Hook("refs-written")
	if len(j.Actions) > 0 {
		if err := w.journal.Remove(); err != nil {
			return err
		}
	}
	w.opts.Hook("done")
	return nil
}

// treeAfter returns the world's id after a restore. If the plan was for the whole world and
// nothing was kept, every path was compared or equals the target's, so it is the target's id.
// Otherwise the world is scanned, since the new rules may hide or show other paths.
func (w *World) treeAfter(ctx context.Context, root *fsys.Root, p *Plan, target *gitfmt.Commit, clean bool) (
	gitfmt.Hash, error,
) {
	if clean && len(p.Options.Paths) == 0 && !p.Overlaid {
		return target.Tree, nil
	}
	// The world is restored; a cancelled context must not leave the journal.
	sc, err := w.scanDir(context.WithoutCancel(ctx), root, nil)
	if err != nil {
		return gitfmt.Hash{}, fmt.Errorf("restore: scan again: %w", err)
	}
	return w.treeOf(sc.Listing), nil
}

type plainResult Result

// MarshalJSON adds written_bytes and deleted_bytes where a path is not UTF-8.
func (r Result) MarshalJSON() ([]byte, error) { return gitfmt.MarshalNames((*plainResult)(&r)) }
