package runtime

import (
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// worldOf returns what a step ended with; of one that has not ended, nothing.
func (t *place) worldOf(id int) (workspace.SavedWorld, error) {
	if t.here.Step == id && t.here.Commit != "" {
		return t.here, nil
	}
	w, err := workspace.WorldAt(t.journal.Log(), &t.state, id)
	if ref, ok := workspace.WorldByName(t.world, t.ID, &t.state, id, err); ok {
		t.damaged = err.Error()
		return ref, nil
	}
	return w, err
}

// Damaged is the last damage of the stream that was overcome: a snapshot of the
// store says what a line does not; empty: there was none.
func (p *place) Damaged() string { return p.damaged }

// commitAt is the commit of a step, or of its nearest ancestor that has one;
// empty where none has.
func (t *place) commitAt(id int) (worldstate.ID, error) {
	if id < 0 || id >= t.state.Steps.Len() {
		return "", nil
	}
	for id > 0 && !t.state.Steps.Saved(id) {
		id = t.state.Steps.Parent(id)
	}
	w, err := t.worldOf(id)
	return w.Commit, err
}
