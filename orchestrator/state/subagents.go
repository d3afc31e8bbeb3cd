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

// Subagents are those that a task began.
type Subagents []BegunSubagent

// fold applies the beginning or the end of a subagent's turn.
func (l *Subagents) fold(o op.Op) {
	switch b := o.Body.(type) {
	case *op.SubagentStarted:
		i := slices.IndexFunc(*l, func(c BegunSubagent) bool { return c.Task == b.Task })
		if i < 0 {
			i = len(*l)
			*l = append(*l, BegunSubagent{Task: b.Task, Agent: b.Agent, Dir: b.Dir, Step: o.Step})
		}
		c := &(*l)[i]
		c.Description, c.Call, c.Running, c.Reason, c.Before = b.Description, b.Call, true, "", b.Before
	case *op.SubagentEnded:
		for i := range *l {
			if c := &(*l)[i]; c.Task == b.Task {
				c.Running, c.Reason = false, b.Reason
			}
		}
	}
}

// InWorld reports whether one runs in the task's directory.
func (l Subagents) InWorld() bool {
	return slices.ContainsFunc(l, func(c BegunSubagent) bool { return c.Running && c.Dir == "" })
}

// BegunIn returns the subagents that began in some steps.
func (l Subagents) BegunIn(steps []int) []BegunSubagent {
	return slices.DeleteFunc(slices.Clone(l), func(c BegunSubagent) bool { return !slices.Contains(steps, c.Step) })
}
