package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// EditsAfter reads the changes that ChangesAfter names.
func EditsAfter(s *state.State, stream taskdir.Stream, step int) ([]worldstate.Edit, error) {
	var out []worldstate.Edit
	for _, seq := range s.ChangesAfter(step) {
		b, err := taskdir.ReadBody[*op.WorldChanged](stream, seq)
		if err != nil {
			return nil, fmt.Errorf("read what the user changed: %w", err)
		}
		out = append(out, worldstate.Edit{
			From: worldstate.ID(b.From), Or: worldstate.ID(b.Or), To: worldstate.ID(b.To),
			Only: b.Only, Unknown: b.By != state.ChangedByUser,
		})
	}
	return out, nil
}

// InBoth returns the changes of a whose path b also names.
func InBoth(a, b []worldstate.Change) []worldstate.Change {
	named := make(map[string]bool, len(b))
	for _, c := range b {
		named[strings.TrimSuffix(c.Path, "/")] = true
	}
	return slices.DeleteFunc(a, func(c worldstate.Change) bool { return !named[strings.TrimSuffix(c.Path, "/")] })
}

// NotRestorable returns the error of a step whose world the store lacks; nil for nil.
func NotRestorable(step int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the world of step %d cannot be restored: %w", step, AsDamage(err))
}

// AsDamage makes an unknown snapshot that the stream names an error of damage.
func AsDamage(err error) error {
	if errors.Is(err, worldstate.ErrUnknown) {
		return fmt.Errorf("%w: %w", worldstate.ErrCorrupt, err)
	}
	return err
}

// Lost reports whether a world was found empty. That is not a user's edit: the directory was
// removed, or recreated without its files, and a jump restores them.
func Lost(s worldstate.Snapshot) bool { return s.Files == 0 }

// BaseOf returns the snapshot since which a change counts as the user's.
func BaseOf(j *state.Jumping) worldstate.ID {
	if j.Overwrite {
		return worldstate.ID(j.FromCommit)
	}
	return worldstate.ID(cmp.Or(j.Base, j.FromCommit))
}

// Unreadable adds the paths a snapshot could not hold to those that stay.
func Unreadable(kept, skipped []worldstate.Skip) []worldstate.Skip {
	listed := make(map[string]bool, len(kept))
	for _, k := range kept {
		listed[k.Path] = true
	}
	for _, s := range skipped {
		if !listed[s.Path] {
			kept = append(kept, s)
		}
	}
	return kept
}

// EditsIn is EditsAfter for a task that is not open, with what changed since its last
// snapshot: a jump or a restore records that first.
func EditsIn(s *state.State, stream taskdir.Stream, step int) ([]worldstate.Edit, error) {
	edits, err := EditsAfter(s, stream, step)
	return append(edits, worldstate.Edit{Unknown: s.AuthorUnknown()}), err
}

// PlanSince plans. If the store has lost the base, it plans from the newest whole snapshot
// before it; if there is none, every path that differs from the target stays.
func PlanSince(ctx context.Context, w *worldstate.World, target worldstate.ID, o worldstate.PlanOptions,
	before iter.Seq[worldstate.ID]) (worldstate.Plan, error) {
	plan, err := w.Plan(ctx, target, &o)
	lost := plan.BaseLost
	if err != nil || lost == "" {
		return plan, err
	}
	for o.Base = range before {
		if plan, err = w.Plan(ctx, target, &o); err != nil || plan.BaseLost == "" {
			break
		}
	}
	plan.BaseLost = lost
	return plan, err
}

// StepWith is StepAt over n steps; is reports whether a step ended with the commit.
func StepWith(n int, name string, is func(id int) bool) int {
	if id, err := strconv.Atoi(name); err == nil && id >= 0 && id < n && is(id) {
		return id
	}
	for id := n - 1; id >= 0; id-- {
		if is(id) {
			return id
		}
	}
	return -1
}
