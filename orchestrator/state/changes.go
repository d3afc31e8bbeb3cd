package state

import (
	"slices"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state/steps"
)

const (
	ChangedByAgent = "agent"
)

// Snapshot is one that is not a step's.
type Snapshot struct {
	Commit  string
	Tree    string // the world id; empty: not known
	Partial bool   `json:",omitempty"` // the step under way has a part in it
}

// snapshot records the last snapshot of the world, the zero one for that of the
// current step.
func (s *State) snapshot(n Snapshot) {
	s.Now, s.Dirty = n, false
	s.Busy = len(s.Jobs) > 0 || slices.ContainsFunc(s.Subagents, func(c BegunSubagent) bool { return c.Running && c.Dir == "" })
}

// changed records a change that was seen apart from a step's end.
func (s *State) changed(seq uint64, b *op.WorldChanged) {
	if b.By != ChangedByAgent {
		s.Changes = append(s.Changes, seq)
	}
	if b.Task == "" {
		s.snapshot(Snapshot{b.To, b.Tree, b.By == ChangedByAgent || s.Now.Partial})
	}
}

// worldNow stands for the tree of the last snapshot.
func (s *State) worldNow() steps.Mark {
	if s.Now.Tree != "" {
		return steps.MarkOf(s.Now.Tree)
	}
	return s.Steps.At(s.Current).World
}

// ChangesAfter returns the operations that record changes of the user's, or of an
// unknown author, after a step ended; below 0 the current one.
func (s *State) ChangesAfter(step int) []uint64 {
	if step < 0 {
		step = s.Current
	}
	i, _ := slices.BinarySearch(s.Changes, s.Steps.At(step).Last)
	return s.Changes[i:]
}

// overwritten forgets the changes after a step: the user had them reverted.
func (s *State) overwritten(step int) {
	s.Changes = slices.Clip(s.Changes[:len(s.Changes)-len(s.ChangesAfter(step))])
}

// AuthorUnknown reports whether a change since the last snapshot may be another's
// than the user's: something of ours works in the directory, or did.
func (s *State) AuthorUnknown() bool {
	p := s.Opened.Parent
	return s.Busy || p != nil && !p.Fork
}
