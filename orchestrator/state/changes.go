package state

import (
	"slices"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state/steps"
)

const ChangedByAgent = "agent"

// Snapshot is a snapshot that is not a step's.
type Snapshot struct {
	Commit  string
	Tree    string // the world id; empty: not known
	Partial bool   `json:",omitempty"` // it includes changes of the step under way
}

// World is the task's directory.
type World struct {
	// Restoring is a user's restore of files that has no result.
	Restoring *op.RestoreIntended `json:",omitempty"`
	// Now is the last snapshot of the world, if it is not the current step's. Dirty: a call
	// that may write ran since then. Busy: a background command or a subagent ran since then.
	Now         Snapshot
	Dirty, Busy bool `json:",omitempty"`
	// Gone: the directory was not at its path when the last step ended.
	Gone bool `json:",omitempty"`
	// Changes are the op.WorldChanged operations by the user or an unknown author, by seq,
	// ascending.
	Changes []uint64 `json:",omitempty"`
}

// snapshot sets the last snapshot of the world; the zero Snapshot means that of the current
// step.
func (s *State) snapshot(n Snapshot) {
	s.World.Gone = false
	s.World.Now, s.World.Dirty, s.World.Busy = n, false, len(s.Jobs.Running) > 0 || s.Subagents.InWorld()
}

// changed records a change found apart from a step's end.
func (s *State) changed(seq uint64, b *op.WorldChanged) {
	if b.By != ChangedByAgent {
		s.World.Changes = append(s.World.Changes, seq)
	}
	if b.Task == "" {
		s.snapshot(Snapshot{b.To, b.Tree, b.By == ChangedByAgent || len(b.Only) > 0 || s.World.Now.Partial})
	}
}

// worldNow returns the mark of the last snapshot's tree.
func (s *State) worldNow() steps.Mark {
	if tree := s.World.Now.Tree; tree != "" {
		return steps.MarkOf(tree)
	}
	return s.Steps.At(s.Current).World
}

// ChangesAfter returns the operations that record changes by the user, or by an unknown
// author, after a step ended; below 0 the current one.
func (s *State) ChangesAfter(step int) []uint64 {
	if step < 0 {
		step = s.Current
	}
	i, _ := slices.BinarySearch(s.World.Changes, s.Steps.At(step).Last)
	return s.World.Changes[i:]
}

// overwritten forgets the changes after a step, which the user had reverted.
func (s *State) overwritten(step int) {
	s.World.Changes = slices.Clip(s.World.Changes[:len(s.World.Changes)-len(s.ChangesAfter(step))])
}

// AuthorUnknown reports whether a change since the last snapshot may not be the user's: a
// call, background command or subagent of the task works in the directory, or did since then.
func (s *State) AuthorUnknown() bool {
	p := s.Opened.Parent
	return s.World.Busy || p != nil && !p.Fork
}
