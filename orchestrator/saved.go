package orchestrator

import (
	"fmt"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/worldstate"
)

// savedWorld is what a step ended with. A State does not keep it: it stands in
// the stream, in the step's last operation, and is read from there.
type savedWorld struct {
	step   int
	commit worldstate.ID // empty: no checkpoint
	tree   string
}

// worldOf gives what a step ended with; of one that has not ended, nothing.
func (t *Task) worldOf(id int) (savedWorld, error) {
	if t.here.step == id && t.here.commit != "" {
		return t.here, nil
	}
	return worldAt(t.log, &t.state, id)
}

// treesOf gives the trees that two steps ended with.
func (t *Task) treesOf(a, b int) (trees [2]string, err error) {
	for i, id := range []int{a, b} {
		w, err := t.worldOf(id)
		if err != nil {
			return trees, err
		}
		trees[i] = w.tree
	}
	return trees, nil
}

// commitAt is the commit of a step, or of its nearest ancestor that has one;
// empty where none has.
func (t *Task) commitAt(id int) (worldstate.ID, error) {
	if id < 0 || id >= t.state.Steps.Len() {
		return "", nil
	}
	for id > 0 && !t.state.Steps.Saved(id) {
		id = t.state.Steps.Parent(id)
	}
	w, err := t.worldOf(id)
	return w.commit, err
}

// worldAt reads what a step ended with.
func worldAt(stream interface {
	Get(seq uint64) (opstream.Record, error)
}, s *State, id int) (savedWorld, error) {
	w := savedWorld{step: id}
	st := s.Steps.At(id)
	if !st.Saved {
		return w, nil
	}
	rec, err := stream.Get(st.Last)
	if err != nil {
		return savedWorld{}, fmt.Errorf("read the world of step %d: %w", id, err)
	}
	o, err := decode(rec)
	if err != nil {
		return savedWorld{}, fmt.Errorf("read the world of step %d: %w", id, err)
	}
	b, ok := o.Body.(*op.WorldSaved)
	if !ok || o.Step != id || b.Commit == "" {
		return savedWorld{}, fmt.Errorf("%w: op %d does not end step %d with a world", ErrStream, st.Last, id)
	}
	w.commit, w.tree = worldstate.ID(b.Commit), b.Tree
	return w, nil
}

// Commits gives the snapshots that some steps of a task ended with, in the order
// of the ids; empty ones for those without a checkpoint. The State is that of the
// task's stream. Without ids it gives those of all steps. Those that cannot be read
// are empty, too, and the error is that of the first.
func Commits(h Home, task string, s *State, ids ...int) ([]worldstate.ID, error) {
	r, err := openStream(h, task, &opstream.Options{Checkpoint: foldVersion})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if ids == nil {
		for id := range s.Steps.Len() {
			ids = append(ids, id)
		}
	}
	out := make([]worldstate.ID, len(ids))
	var first error
	for i, id := range ids {
		w, err := worldAt(r, s, id)
		if out[i] = w.commit; first == nil {
			first = err
		}
	}
	return out, first
}
