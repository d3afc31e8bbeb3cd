package worldstate

import (
	"context"
	"errors"
	"fmt"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/plan"
	"anamnesis/worldstate/internal/refs"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/tree"
)

// A Result is what a restore did.
type Result struct {
	Source ID `json:"source"` // the world just before, saved
	Target ID `json:"target"`
	// Written and Deleted are the plan's lists, without what was kept on the
	// way. Never nil.
	Written []string `json:"written"`
	Deleted []string `json:"deleted"`
	Kept    []Skip   `json:"kept"` // what does not match the target, and why
	Tree    string   `json:"tree"` // the world id afterwards
	// Exact reports whether the world now is the target in every path.
	Exact    bool   `json:"exact"`
	BaseLost string `json:"base_lost,omitempty"` // as the plan's
}

// RestoreOptions say how RestoreTo plans.
type RestoreOptions struct {
	PlanOptions
	// PlanHash, when given, must be the hash of the plan that results.
	PlanHash string
	// Message is the first line of the snapshot of the present world.
	Message string
	// Intend is called with a plan that moves something, when both its ends are
	// durable and before the first byte moves; an error of its ends the restore.
	// It must not use the World. nil: it is not called.
	Intend func(Plan) error
}

// Restore applies a plan. First the present world is saved (no new snapshot
// where it is held already) and the plan worked out again: another result is
// ErrStale. Both ends are durable and read back before the first byte moves.
// A failure on the way rolls back; see RestoreError. Killed anywhere, Recover
// ends at the target or the source. A path that another program changes while
// the restore runs is left and listed in Kept.
//
// It returns when every path is as planned and was checked again. What
// makes that durable continues in the background: every other operation waits for it, and
// so does Settle, which says whether it was done. Until then the journal is there,
// so that after a power cut Recover ends at the target.
func (w *World) Restore(ctx context.Context, p Plan) (Result, error) {
	if p.Hash == "" {
		return Result{}, fmt.Errorf("restore: %w: it was not made by Plan", ErrStale)
	}
	o := RestoreOptions{PlanOptions: p.Options, PlanHash: p.Hash, Message: "before restoring " + gitfmt.Short(p.Target)}
	o.Base = p.Base
	return w.restore(ctx, p.Target, o)
}

// RestoreTo saves the present world, plans and applies under one lock. What
// was changed since the snapshot the world was last known at is kept, unless
// OverwriteEdits; in either case it is in the snapshot Result.Source. It returns
// when Restore does.
func (w *World) RestoreTo(ctx context.Context, target ID, o RestoreOptions) (Result, error) {
	if o.Message == "" {
		o.Message = "before restoring " + gitfmt.Short(target)
	}
	return w.restore(ctx, target, o)
}

// restore takes the lock and passes it to the goroutine that makes the restore durable.
func (w *World) restore(ctx context.Context, target ID, o RestoreOptions) (Result, error) {
	end, err := w.begin(ctx, changing)
	if err != nil {
		return Result{}, err
	}
	res, settle, err := w.restoreLocked(ctx, target, o)
	if err != nil || settle == nil {
		end()
		return res, err
	}
	go func() {
		defer end()
		if err := settle(); err != nil {
			w.unsettled = fmt.Errorf("restore %s: make it durable: %w", target, w.stuck(err))
		}
	}()
	return res, nil
}

// Settle waits until the last restore is durable. An error says that it could
// not be made so: its journal is still there, and Recover must be called.
func (w *World) Settle() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unsettled
}

// effects is what an executor needs beside the directory.
func (w *World) effects() restore.Effects {
	return restore.Effects{Objects: w.objects, Hook: w.opts.Hook, Fault: w.track.Fault, Heed: w.track.Heed, Piece: w.writePiece}
}

func (w *World) restoreLocked(ctx context.Context, target ID, o RestoreOptions) (res Result, settle func() error, err error) {
	c, err := w.byID(target)
	if err != nil {
		return res, nil, fmt.Errorf("restore: %w", err)
	}
	head, err := w.head()
	if err != nil {
		return res, nil, err
	}
	if o.Base == "" && !head.IsZero() {
		o.Base = ID(head.String())
	}
	save := SaveOptions{Message: o.Message, beforeRestore: true}
	if !head.IsZero() {
		save.Parent = ID(head.String())
	}
	snap, sc, err := w.saveLocked(ctx, save)
	if err != nil {
		return res, nil, fmt.Errorf("restore: save the present world first: %w", err)
	}
	source, _ := gitfmt.ParseHash(string(snap.ID))
	root, err := fsys.OpenRoot(w.dir)
	if err != nil {
		return res, nil, err
	}
	defer func() {
		if settle == nil {
			root.Close()
		}
	}()
	p, err := w.planFrom(ctx, root.Fd, sc, target, o.PlanOptions)
	if err != nil {
		return res, nil, err
	}
	if o.PlanHash != "" && p.Hash != o.PlanHash {
		return res, nil, fmt.Errorf("restore: %w: the world or its snapshots changed since plan %s (now %s); plan again", ErrStale, o.PlanHash, p.Hash)
	}
	p.Source = snap.ID
	if p.Lost { // what comes after counts as an edit from here on
		p.Base = snap.ID
	}
	res, settle, err = w.apply(ctx, root, &p, sc.Listing, c, source, o.Intend)
	res.BaseLost = p.BaseLost
	return res, settle, err
}

// apply does a plan under the journal, once intend has returned. settle, which closes root, makes it
// durable; nil when it is.
func (w *World) apply(ctx context.Context, root *fsys.Root, p *Plan, now *tree.Listing, target *gitfmt.Commit, source gitfmt.Hash, intend func(Plan) error) (res Result, settle func() error, err error) {
	w.opts.Hook("planned")
	if err := restore.ProbeAll(ctx, w.objects, p.Actions, restore.BeforeOf); err != nil {
		return res, nil, fmt.Errorf("restore: the present world is not held: %w", err)
	}
	head, err := w.headAfter(p, target, source)
	if err != nil {
		return res, nil, err
	}
	j := &restore.Journal{World: w.key, Source: source, Target: target.Id, Head: head, Nonce: fsys.NewNonce(), Boot: fsys.BootID(), Actions: p.Actions}
	if len(j.Actions) == 0 {
		if res, err = w.result(ctx, root, j, p, target, nil); err == nil {
			err = w.finish(j)
		}
		return res, nil, err
	}
	j.Actions = restore.Guarded(p.Actions, now)
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
	x := restore.New(w.effects(), root.Fd, j, restore.Fresh)
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
	return res, func() error {
		defer root.Close()
		if err := x.Sync(); err != nil {
			return err
		}
		w.opts.Hook("synced")
		return w.finish(j)
	}, nil
}

// rollBack undoes a restore that failed on the way.
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
		re.Err, re.Abandon = fmt.Errorf("%w; roll back: %w", re.Err, err), w.abandonCommand()
		return re
	}
	re.RolledBack = true
	return re
}

// headAfter returns the snapshot the world will be known at after a plan: the
// target for a whole restore; for a subset a snapshot made for it, which is
// the base with the restored paths changed, so that what the user had
// edited elsewhere still counts as an edit.
func (w *World) headAfter(p *Plan, target *gitfmt.Commit, source gitfmt.Hash) (gitfmt.Hash, error) {
	if len(p.Options.Paths) == 0 {
		return target.Id, nil
	}
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
	c.Message = fmt.Sprintf("base after restoring %d paths of %s", len(p.Actions), gitfmt.Short(p.Target))
	if err := addCommit(pack, &c); err != nil {
		return gitfmt.Hash{}, fmt.Errorf("restore: %w", err)
	}
	return c.Id, w.objects.Publish(pack, w.opts.SizeLimitBytes)
}

// result says what came of a restore that is done and compared.
func (w *World) result(ctx context.Context, root *fsys.Root, j *restore.Journal, p *Plan, target *gitfmt.Commit, raced []Skip) (Result, error) {
	res := Result{Source: ID(j.Source.String()), Target: ID(j.Target.String()), Written: []string{}, Deleted: []string{}, Kept: []Skip{}}
	res.Kept = append(append(res.Kept, p.Keep...), raced...)
	stayed := make(map[string]bool, len(raced))
	for _, s := range raced {
		stayed[s.Path] = true
	}
	for _, a := range p.Actions {
		switch {
		case stayed[a.Path]:
		case a.After.Absent():
			res.Deleted = append(res.Deleted, plan.Shown(a.Path, a.Before))
		default:
			res.Written = append(res.Written, plan.Shown(a.Path, a.After))
		}
	}
	tree, err := w.treeAfter(ctx, root, p, target, len(res.Kept) == 0)
	if err != nil {
		return Result{}, err
	}
	res.Tree, res.Exact = tree.String(), tree == target.Tree
	return res, nil
}

// finish moves the world's ref after a restore that is durable and, after that,
// removes the journal.
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

// treeAfter returns the world's id after a restore. Where the plan was for the
// whole world and nothing was kept, every path was just compared or was as
// the target has it: it is the target's. Otherwise the world is scanned, since
// the rules that hold now may show and hide other paths than those before.
func (w *World) treeAfter(ctx context.Context, root *fsys.Root, p *Plan, target *gitfmt.Commit, clean bool) (gitfmt.Hash, error) {
	if clean && len(p.Options.Paths) == 0 && !p.Overlaid {
		return target.Tree, nil
	}
	// The world is restored; a cancelled context must not leave the journal
	// in place for nothing.
	sc, err := w.see(context.WithoutCancel(ctx), root, nil)
	if err != nil {
		return gitfmt.Hash{}, fmt.Errorf("restore: look again: %w", err)
	}
	return w.treeOf(sc.Listing), nil
}

type plainResult Result

// MarshalJSON adds written_bytes and deleted_bytes where a path is not UTF-8.
func (r Result) MarshalJSON() ([]byte, error) { return gitfmt.MarshalNames((*plainResult)(&r)) }
