package inspect

import (
	"cmp"
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
		Summary: taskdir.Summarize(h, id, st), Model: st.Model.Name, Step: st.Current, Tokens: st.Totals.Usage,
		Todos: st.Todos, Answer: st.Said.Answer,
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
		row := Subagent{Task: c.Task, Agent: c.Agent, Description: c.Description, Step: c.Step, State: c.Reason,
			Dir: c.Dir}
		row.Left = c.Step < st.Steps.Len() && st.Steps.At(c.Step).Ended && !st.Steps.OnPath(c.Step, st.Current)
		if c.Running {
			row.State = "working"
		}
		v.Subagents = append(v.Subagents, row)
	}
	return v, nil
}

// Op reads one operation of a task. If there is none of that number, the error is a taskdir.ErrNoOp.
func Op(h taskdir.Home, id string, seq uint64) (op.Op, error) {
	f, err := taskdir.Follow(h, id)
	if err != nil {
		return op.Op{}, err
	}
	defer f.Close()
	l, err := f.Line(seq)
	return l.Op, cmp.Or(err, l.Err)
}
