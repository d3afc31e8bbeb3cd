package orchestrator

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/worldstate"
)

// RestoreWorld brings the files back to a snapshot for a person, in a task that
// is not running, and nothing else: no step is left, nothing is folded, and the
// next step goes on from the current one. The name is one that the worldstate
// package resolves. The model is told what was done with its next request; where
// nothing was moved, nothing is recorded. A crash between the restore and its
// record leaves the files as the restore did, as if the person had copied them.
func (t *Task) RestoreWorld(ctx context.Context, name string, o worldstate.RestoreOptions, resumed *op.TaskResumed) (worldstate.Result, error) {
	id, err := t.world.Resolve(ctx, name)
	if err != nil {
		return worldstate.Result{}, err
	}
	if err := t.takeOver(ctx, context.WithoutCancel(ctx), resumed, "Not run: the person took the task over before it began."); err != nil {
		return worldstate.Result{}, err
	}
	res, err := t.world.RestoreTo(ctx, id, o)
	if err == nil {
		err = t.world.Settle()
	}
	if err != nil || len(res.Written)+len(res.Deleted) == 0 {
		return res, err
	}
	b := &op.WorldRestored{
		From: string(res.Source), To: string(res.Target), ToStep: t.state.stepAt(string(id), strings.TrimPrefix(name, t.ID+"@")), Paths: o.Paths,
		Written: len(res.Written), Deleted: len(res.Deleted), Kept: firstN(skips(res.Kept), maxListed), By: byPerson,
	}
	b.Notice = restoredNotice(b, t.state.Current, res)
	return res, t.record(context.WithoutCancel(ctx), b)
}

// stepAt is the step that ended with a commit: the one a name says, the last
// where it names none, since one that changed nothing has the commit before
// it; -1 when none did.
func (s *State) stepAt(commit, name string) int {
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < s.Steps.Len() && s.Steps.At(n).Commit == commit {
		return n
	}
	for i := s.Steps.Len() - 1; i >= 0; i-- {
		if s.Steps.At(i).Commit == commit {
			return i
		}
	}
	return -1
}

// restoredNotice tells the model of files that a person brought back.
func restoredNotice(b *op.WorldRestored, current int, res worldstate.Result) string {
	var sb strings.Builder
	state := "an older snapshot"
	if b.ToStep >= 0 {
		state = fmt.Sprintf("the end of step %d", b.ToStep)
	}
	what := "the directory's files"
	if len(b.Paths) > 0 {
		what = list(b.Paths, len(b.Paths))
	}
	fmt.Fprintf(&sb, "[WORLD] The person brought %s back to %s. No step was undone: you go on from step %d, and what was said and done above stands.", what, state, current)
	if len(res.Written) > 0 {
		fmt.Fprintf(&sb, "\nChanged back: %s.", list(res.Written, len(res.Written)))
	}
	if len(res.Deleted) > 0 {
		fmt.Fprintf(&sb, "\nGone: %s.", list(res.Deleted, len(res.Deleted)))
	}
	if len(b.Kept) > 0 {
		names := make([]string, len(b.Kept))
		for i, k := range b.Kept {
			names[i] = k.Path
		}
		fmt.Fprintf(&sb, "\nKept as they were: %s.", list(names, len(names)))
	}
	sb.WriteString("\nWhat you read of these files before may be out of date: read them again before you rely on it.")
	return sb.String()
}
