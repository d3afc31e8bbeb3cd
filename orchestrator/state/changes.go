package state

import (
	"slices"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state/steps"
)

const (
	ChangedByAgent = "agent"
)

// Snapshot is a snapshot that is not a step's.
type Snapshot struct {
	Commit  string
	Tree    string // the world id; empty: not known
	Partial bool   `json:",omitempty"` // it includes changes of the step under way
}

// snapshot sets the last snapshot of the world; the zero Snapshot means that of the current
// step.
func (s *State) snapshot(n Snapshot) {
	s.Now, s.Dirty = n, false
	s.Busy = len(s.Jobs) > 0 || slices.ContainsFunc(s.Subagents, func(c BegunSubagent) bool { return c.Running && c.Dir == "" })
}

// changed records a change found apart from a step's end.
func (s *State) changed(seq uint64, b *op.WorldChanged) {
	if b.By != ChangedByAgent {
		s.Changes = append(s.Changes, seq)
	}
	if b.Task == "" {
		s.snapshot(Snapshot{b.To, b.Tree, b.By == ChangedByAgent || s.Now.Partial})
	}
}

// worldNow returns the mark of the last snapshot's tree.
func (s *State) worldNow() steps.Mark {
	if s.Now.Tree != "" {
		return steps.MarkOf(s.Now.Tree)
	}
	return s.Steps.At(s.Current).World
}

// ChangesAfter returns the operations that record changes by the user, or by an unknown
// author, after a step ended; below 0 the current one.
func (s *State) ChangesAfter(step int) []uint64 {
	if step < 0 {
		step = s.Current
	}
	i, _ := slices.BinarySearch(s.Changes, s.Steps.At(step).Last)
	return s.Changes[i:]
}

// overwritten forgets the changes after a step, which the user had reverted.
func (s *State) overwritten(step int) {
	s.Changes = slices.Clip(s.Changes[:len(s.Changes)-len(s.ChangesAfter(step))])
}

// AuthorUnknown reports whether a change since the last snapshot may not be the user's: a
// call, background command or subagent of the task works in the directory, or did since then.
func (s *State) AuthorUnknown() bool {
	p := s.Opened.Parent
	return s.Busy || p != nil && !p.Fork
}
