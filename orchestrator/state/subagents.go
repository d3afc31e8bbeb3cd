package state

import (
	"slices"

	"anamnesis/opstream/op"
)

// BegunSubagent is a subagent that the task began.
type BegunSubagent struct {
	Task, Agent string
	Description string
	Call        string // the one it works on, or worked on last
	Dir         string // its own; empty: the task's
	Step        int    // in which it began
	Running     bool   // its end is not recorded
	Reason      string // how its last turn ended
	Before      op.Usage
}

// subagent applies the beginning or the end of a subagent's turn.
func (s *State) subagent(o op.Op) {
	switch b := o.Body.(type) {
	case *op.SubagentStarted:
		i := slices.IndexFunc(s.Subagents, func(c BegunSubagent) bool { return c.Task == b.Task })
		if i < 0 {
			i = len(s.Subagents)
			s.Subagents = append(s.Subagents, BegunSubagent{Task: b.Task, Agent: b.Agent, Dir: b.Dir, Step: o.Step})
		}
		c := &s.Subagents[i]
		c.Description, c.Call, c.Running, c.Reason, c.Before = b.Description, b.Call, true, "", b.Before
		s.Busy = s.Busy || b.Dir == ""
	case *op.SubagentEnded:
		for i := range s.Subagents {
			if c := &s.Subagents[i]; c.Task == b.Task {
				c.Running, c.Reason = false, b.Reason
			}
		}
		s.Totals.Usage = s.Totals.Usage.Plus(b.Usage)
		s.Turn.Steps += b.Steps
	}
}

// SubagentsOf returns the subagents that began in some steps.
func (s *State) SubagentsOf(steps []int) []BegunSubagent {
	return slices.DeleteFunc(slices.Clone(s.Subagents), func(c BegunSubagent) bool { return !slices.Contains(steps, c.Step) })
}
