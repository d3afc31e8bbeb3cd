package workspace

import "anamnesis/worldstate"

// WorldOf returns the world at the end of a step; the zero value if it has not ended.
func (p *Place) WorldOf(id int) (SavedWorld, error) {
	if p.here.Step == id && p.here.Commit != "" {
		return p.here, nil
	}
	w, err := WorldAt(p.Journal.Log(), p.State(), id)
	if err == nil && id == p.State().Current {
		p.here = w
	}
	if ref, ok := WorldByName(p.World, p.ID, p.State(), id, err); ok {
		p.damaged = err.Error()
		return ref, nil
	}
	return w, err
}

// Damaged describes the last damage of the stream that a snapshot of the store made up for;
// empty: none.
func (p *Place) Damaged() string { return p.damaged }

// CommitAt returns the commit of a step, or of its nearest ancestor that has one; empty if
// none has.
func (p *Place) CommitAt(id int) (worldstate.ID, error) {
	if id < 0 || id >= p.State().Steps.Len() {
		return "", nil
	}
	for id > 0 && !p.State().Steps.At(id).Saved {
		id = p.State().Steps.At(id).Parent
	}
	w, err := p.WorldOf(id)
	return w.Commit, err
}

// commitOf returns the commit of the last snapshot, or that of the current step's nearest
// ancestor that has one.
func (p *Place) commitOf(last SavedWorld) (worldstate.ID, error) {
	if last.Commit != "" {
		return last.Commit, nil
	}
	return p.CommitAt(p.State().Current)
}
