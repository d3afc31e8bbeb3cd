package worldstate

import (
	"context"
	"fmt"

	"anamnesis/worldstate/internal/plan"
	"anamnesis/worldstate/internal/scan"
	"anamnesis/worldstate/internal/tree"
)

// The types of Plan. 'go doc anamnesis/worldstate/internal/plan' lists their fields.
type (
	// PlanOptions narrow a plan: Paths, OverwriteEdits, Base, Edits, OtherWorld.
	PlanOptions = plan.Options
	// Plan describes what a restore would do: the paths it would Write and Delete, those that it
	// would Keep and why, and Conflicts with edits. Restore computes it again and requires the same Hash.
	Plan = plan.Plan
	// Edit is a change of the world that later restores keep: the difference of the snapshots From and To.
	Edit = plan.Edit
)

// Plan computes what restoring target would do, and checks that the store holds every object it
// needs, intact. It writes nothing. Errors: ErrUnknown, ErrRefused for another world's
// snapshot, ErrNoPath for a path in PlanOptions.Paths that does not exist, *MissingObjectError,
// ErrUnfinished.
func (w *World) Plan(ctx context.Context, target ID, o *PlanOptions) (Plan, error) {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return Plan{}, err
	}
	defer end()
	if err := w.checkNoJournal(); err != nil {
		return Plan{}, err
	}
	root, err := w.openRoot()
	if err != nil {
		return Plan{}, err
	}
	defer root.Close()
	sc, err := w.scanDir(ctx, root, nil)
	if err != nil {
		return Plan{}, err
	}
	if o == nil {
		o = &PlanOptions{}
	}
	return w.planFrom(ctx, root.Fd, sc, target, *o)
}

func (w *World) planFrom(ctx context.Context, root int, sc *scan.Scanned, target ID, o PlanOptions) (Plan, error) {
	c, err := w.byID(target)
	if err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	if !w.isOwn(c) && !o.OtherWorld && !sc.Empty() { // an empty directory has nothing that could be lost by it
		return Plan{}, fmt.Errorf("plan: %w: snapshot %s was taken of another directory than %s",
			ErrRefused, target, w.dir)
	}
	if o.Paths, err = plan.RelativePaths(w.dir, o.Paths); err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	in := plan.Input{
		World: w.key, Root: root, Now: sc, Track: w.track, Objects: w.objects, Listing: w.listing,
		Target: c, Base: tree.Empty(), Options: o,
	}
	if in.Want, err = w.tree(c.Tree); err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", target, err)
	}
	if in.Policy, err = w.policyOf(c, in.Want); err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", target, err)
	}
	head, err := w.head()
	if err != nil {
		return Plan{}, err
	}
	base := &in.Options.Base
	if *base == "" && !head.IsZero() {
		*base = ID(head.String())
	}
	if *base != "" {
		in.Base, err = w.listing(*base)
		switch {
		case isLost(*base, err):
			in.BaseLost = lostLine(*base, err)
			*base, in.Base = target, in.Want // every file that differs then counts as edited, and is a conflict
		case err != nil:
			return Plan{}, fmt.Errorf("plan: base %s: %w", *base, err)
		}
	}
	p, err := plan.Make(ctx, in)
	if err == nil && !head.IsZero() {
		if c, err := w.objects.Commit(head); err == nil && w.treeOf(sc.Listing) == c.Tree {
			p.Source = ID(head.String())
		}
	}
	return p, err
}

func (w *World) listing(id ID) (*tree.Listing, error) {
	c, err := w.byID(id)
	if err != nil {
		return nil, err
	}
	return w.tree(c.Tree)
}
