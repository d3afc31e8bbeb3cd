package inspect

import (
	"errors"
	"fmt"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// Task describes a task's present state.
type Task struct {
	taskdir.Summary
	Agent  string    `json:"agent,omitempty"`
	Model  string    `json:"model"`
	Step   int       `json:"step"` // the files are those of this step
	Tokens op.Usage  `json:"tokens"`
	Todos  []op.Todo `json:"todos,omitempty"`
	Jobs   []Job     `json:"jobs,omitempty"` // background commands that have not ended
	// Subagents are those the task began, oldest first. Begun, of a subagent, is what began
	// it.
	Subagents []Subagent `json:"subagents,omitempty"`
	Begun     *op.Parent `json:"begun,omitempty"`
	Answer    string     `json:"answer,omitempty"`
	Goal      []string   `json:"goal,omitempty"`  // the commands that check it
	Curve     string     `json:"curve,omitempty"` // how their runs went
}

// Job is one background command.
type Job struct {
	ID      string `json:"id"`
	Command string `json:"command"`
	Step    int    `json:"step"` // in which it began
}

// Subagent is one subagent of a task.
type Subagent struct {
	Task        string `json:"task"`
	Agent       string `json:"agent"`
	Description string `json:"description"`
	Step        int    `json:"step"`  // in which it began
	State       string `json:"state"` // working, or how its last turn ended
	Dir         string `json:"dir,omitempty"`
	Left        bool   `json:"left,omitempty"` // a jump left the step in which it began
}

// Describe reads a task's present state.
func Describe(h taskdir.Home, id string) (Task, error) {
	st, err := taskdir.ReadState(h, id)
	if err != nil {
		return Task{}, err
	}
	v := Task{
		Summary: taskdir.Summarize(h, id, st), Model: st.Model.Name, Step: st.Current, Tokens: st.Totals.Usage, Todos: st.Todos, Answer: st.Said.Answer,
		Begun: st.Opened.Parent, Goal: st.Goal.Until,
	}
	line, text := st.Goal.Curve()
	v.Curve = strings.TrimSpace(line + " " + text)
	for _, j := range st.Jobs.Running {
		v.Jobs = append(v.Jobs, Job{ID: j.Job, Command: j.Command, Step: j.Step})
	}
	if who := st.Opened.Agent; who != nil { // nil in tasks older than specs
		v.Agent = who.Name
	}
	for _, c := range st.Subagents {
		row := Subagent{Task: c.Task, Agent: c.Agent, Description: c.Description, Step: c.Step, State: c.Reason, Dir: c.Dir}
		row.Left = c.Step < st.Steps.Len() && st.Steps.At(c.Step).Ended && !st.Steps.OnPath(c.Step, st.Current)
		if c.Running {
			row.State = "working"
		}
		v.Subagents = append(v.Subagents, row)
	}
	return v, nil
}

// errFound ends a walk over the operations early.
var errFound = errors.New("found")

// ErrNoOp: a task has no operation of that number.
var ErrNoOp = errors.New("no such operation")

// Op reads one operation of a task.
func Op(h taskdir.Home, id string, seq uint64) (op.Op, error) {
	var found op.Op
	last := uint64(0)
	err := taskdir.EachOp(h, id, func(o op.Op) error {
		last = o.Seq
		if o.Seq == seq {
			found = o
			return errFound
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return op.Op{}, err
	}
	if found.Seq == 0 {
		return op.Op{}, fmt.Errorf("%w: task %s has no op %d; the last is %d", ErrNoOp, id, seq, last)
	}
	return found, nil
}
