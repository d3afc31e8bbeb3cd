package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/state/steps"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// SavedWorld is the world at the end of a step. State does not hold it: it is read from the step's
// last operation. If that line is damaged, the snapshot with the step's name replaces it.
type SavedWorld struct {
	Step   int
	Commit worldstate.ID // empty: no checkpoint
	Tree   string
}

// WorldByName returns the world at a step's end from the name of its snapshot, if the stream's
// line is damaged. A step that changed no file has no snapshot of its name. A snapshot whose
// tree differs from the fold's is ignored.
func WorldByName(w *worldstate.World, task string, s *state.State, id int, damage error) (SavedWorld, bool) {
	if w == nil || !errors.Is(damage, opstream.ErrCorrupt) {
		return SavedWorld{}, false
	}
	ctx := context.Background() // reading the store does not block
	commit, err := w.Resolve(ctx, fmt.Sprintf("%s@%d", task, id))
	if err != nil {
		return SavedWorld{}, false
	}
	c, err := w.Describe(ctx, commit)
	if err != nil || s.Steps.At(id).World != steps.MarkOf(c.Tree) {
		return SavedWorld{}, false
	}
	return SavedWorld{id, commit, c.Tree}, true
}

// ReadableFor returns what is damaged of the operations a jump must read; nil for none. A jump
// with a pass must read everything before, since a pass asks where a text came from; known is
// up to where that was checked already.
func ReadableFor(s *state.State, stream taskdir.Stream, j op.JumpRequested, known uint64) error {
	discarded := s.Discarded(j.To)
	ranges := s.Steps.Ranges(discarded)
	if j.Mail == nil { // a D-Mail makes no pass
		for _, p := range s.PlannedPasses(j.To, discarded, j.Compact) {
			ranges = append(ranges, op.Range{First: min(known+1, p.Ops.First), Last: p.Ops.Last})
		}
	}
	for _, r := range ranges {
		for rec, err := range stream.Since(r.First - 1) {
			if err != nil {
				return remedy.With(fmt.Errorf("ops %s, which it has to read, cannot be read: %w", r, err),
					remedy.RestoreFiles, s.Opened.Task)
			}
			if rec.Seq >= r.Last {
				break
			}
		}
	}
	return nil
}

func WorldAt(stream taskdir.Stream, s *state.State, id int) (SavedWorld, error) {
	w := SavedWorld{Step: id}
	st := s.Steps.At(id)
	if !st.Saved {
		return w, nil
	}
	o, err := taskdir.ReadOp(stream, st.Last)
	if err != nil {
		return SavedWorld{}, fmt.Errorf("read the world of step %d: %w", id, err)
	}
	b, ok := o.Body.(*op.WorldSaved)
	if !ok || o.Step != id || b.Commit == "" {
		return SavedWorld{}, fmt.Errorf("%w: op %d does not end step %d with a world", state.ErrStream, st.Last, id)
	}
	w.Commit, w.Tree = worldstate.ID(b.Commit), b.Tree
	return w, nil
}

// Resolve returns the snapshot that a name on a command line means: STEP of the task,
// TASK@STEP, or what worldstate.World.Resolve takes. A step is looked up in its task's stream
// first, since a step that changed no file has no snapshot of its own.
func Resolve(ctx context.Context, h taskdir.Home, w *worldstate.World, task, name string) (worldstate.ID, error) {
	step := name
	if owner, rest, named := strings.Cut(name, "@"); named {
		task, step = owner, rest
	}
	id, err := strconv.Atoi(step)
	if err == nil && task != "" && h.HasTask(task) {
		st, r, err := taskdir.OpenState(h, task)
		here := false
		if err == nil {
			defer r.Close()
			store, _ := filepath.EvalSymlinks(h.StoreOf(&st.Opened)) // empty if it is gone
			here = store == w.Store()
		}
		if here && id >= 0 && id < st.Steps.Len() && st.Steps.At(id).Saved {
			commits, _, err := Commits(r, st, w, id)
			return commits[0], err
		}
	}
	return w.Resolve(ctx, name)
}

// Commits returns the snapshots that some steps of a task ended with, in the order of the ids;
// empty ones for those without a checkpoint. The State is that of the task's stream. Without
// ids it returns those of all steps. If a line of the stream is damaged, the snapshots of the
// task's world replace it, unless world is nil; overcome describes the first such damage.
// Unreadable ones are empty, and err is the first of their errors.
func Commits(stream taskdir.Stream, s *state.State, world *worldstate.World, ids ...int) (
	commits []worldstate.ID, overcome string, err error) {
	if ids == nil {
		for id := range s.Steps.Len() {
			ids = append(ids, id)
		}
	}
	out := make([]worldstate.ID, len(ids))
	var first error
	for i, id := range ids {
		w, err := WorldAt(stream, s, id)
		if ref, ok := WorldByName(world, s.Opened.Task, s, id, err); ok {
			overcome = cmp.Or(overcome, err.Error())
			w, err = ref, nil
		}
		if out[i] = w.Commit; first == nil {
			first = err
		}
	}
	return out, overcome, first
}

// The trailers of a step's commit: the task, and the last operation that was
// durable when it was made, with its line's hash.
const (
	TrailerTask = "Anamnesis-Task"
	TrailerOp   = "Anamnesis-Op"
)
