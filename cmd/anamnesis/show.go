//go:build unix

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	view "anamnesis/cmd/internal/term"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

func (a *app) showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show TASK [SEQ]",
		Short: "Show a task as it stands, or one of its operations",
		Args:  cobra.RangeArgs(1, 2),
		RunE: a.withHome(func(_ *cobra.Command, args []string, h taskdir.Home) error {
			if len(args) == 1 {
				return a.showTask(h, args[0])
			}
			seq, err := strconv.ParseUint(args[1], 10, 64)
			if err != nil || seq == 0 {
				return usageError("SEQ %q: want the number of an operation, from 1", args[1])
			}
			return a.showOp(h, args[0], seq)
		}),
	}
	a.jsonFlag(cmd, "a JSON object")
	return cmd
}

// errFound ends a walk over the operations early.
var errFound = errors.New("found")

func (a *app) showOp(h taskdir.Home, id string, seq uint64) error {
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
		return err
	}
	if found.Seq == 0 {
		return usageError("task %s has no op %d; the last is %d", id, seq, last)
	}
	kind := op.Kind("unknown")
	if found.Body != nil {
		kind = found.Body.Kind()
	}
	return a.show(map[string]any{"seq": found.Seq, "step": found.Step, "ts": found.Time, "tok": found.Tok, "kind": kind, "body": found.Body}, func() {
		a.printf("op %d  %s  step %d  %d tokens  %s\n\n", found.Seq, kind, found.Step, found.Tok, found.Time.Format(time.RFC3339))
		a.println(view.Clean(strings.Trim(state.OpText(found), "\n")))
	})
}

// taskView is what `show` says of a task.
type taskView struct {
	taskdir.Summary
	Agent  string    `json:"agent,omitempty"`
	Model  string    `json:"model"`
	Step   int       `json:"step"` // that the files stand at
	Tokens op.Usage  `json:"tokens"`
	Todos  []op.Todo `json:"todos,omitempty"`
	Jobs   []jobRow  `json:"jobs,omitempty"` // background commands that have not ended
	// Subagents are those the task began, the oldest first; Begun, of a subagent,
	// is what began it.
	Subagents []subagentRow `json:"subagents,omitempty"`
	Begun     *op.Parent    `json:"begun,omitempty"`
	Answer    string        `json:"answer,omitempty"`
}

// jobRow is one background command.
type jobRow struct {
	ID      string `json:"id"`
	Command string `json:"command"`
	Step    int    `json:"step"` // it was begun in
}

// subagentRow is one subagent of a task.
type subagentRow struct {
	Task        string `json:"task"`
	Agent       string `json:"agent"`
	Description string `json:"description"`
	Step        int    `json:"step"`  // it was begun in
	State       string `json:"state"` // working, or how its last turn ended
	Dir         string `json:"dir,omitempty"`
	Left        bool   `json:"left,omitempty"` // a jump left the step it was begun in
}

func (a *app) showTask(h taskdir.Home, id string) error {
	st, err := taskdir.ReadState(h, id)
	if err != nil {
		return err
	}
	v := taskView{
		Summary: taskdir.Summarize(h, id, st), Model: st.Model, Step: st.Current, Tokens: st.Totals.Usage, Todos: st.Todos, Answer: st.Answer,
	}
	for _, j := range st.Jobs {
		v.Jobs = append(v.Jobs, jobRow{ID: j.Job, Command: j.Command, Step: j.Step})
	}
	v.Begun = st.Opened.Parent
	if who := st.Opened.Agent; who != nil { // nil in tasks of before specs
		v.Agent = who.Name
	}
	for _, c := range st.Subagents {
		row := subagentRow{Task: c.Task, Agent: c.Agent, Description: c.Description, Step: c.Step, State: c.Reason, Dir: c.Dir}
		row.Left = c.Step < st.Steps.Len() && st.Steps.Ended(c.Step) && !st.OnPath(c.Step, st.Current)
		if c.Running {
			row.State = "working"
		}
		v.Subagents = append(v.Subagents, row)
	}
	return a.show(v, func() { a.printTask(v) })
}

func (a *app) printTask(v taskView) {
	say := func(label, format string, args ...any) {
		text := view.Line(fmt.Sprintf(format, args...), max(a.width()-len(label)-1, 20))
		a.println(strings.TrimRight(label+" "+text, " "))
	}
	say("task     ", "%s · %s", v.ID, v.State)
	if b := v.Begun; b != nil {
		say("subagent ", "%s, begun by op %d of task %s", b.Agent, b.Op, b.Task)
	}
	say("request  ", "%s", v.Request)
	say("directory", "%s", v.Dir)
	if v.Agent != "" && v.Begun == nil { // of a subagent, its own line says it
		say("agent    ", "%s", v.Agent)
	}
	say("model    ", "%s · %d tokens in, %d out", v.Model, v.Tokens.Prompt, v.Tokens.Completion)
	if v.Tokens.Tokens() > 0 {
		say("cost     ", "%s", costText(v.Tokens))
	}
	say("record   ", "%d steps, at step %d; %d operations, %d jumps", v.Steps, v.Step, v.Ops, v.Jumps)
	if len(v.Todos) > 0 {
		say("todo list", "%s", op.TodosSummary(v.Todos))
	}
	for _, t := range v.Todos {
		say("         ", "%s", t)
	}
	for _, j := range v.Jobs {
		say("runs     ", "%s (step %d): %s", j.ID, j.Step, j.Command)
	}
	for _, c := range v.Subagents {
		left := ""
		if c.Left {
			left = ", left by a jump"
		}
		say("subagent ", "%s (%s, step %d%s) %s: %s", c.Task, c.Agent, c.Step, left, c.State, c.Description)
	}
	if v.Answer != "" {
		say("answer   ", "%s", v.Answer)
	}
}

// costText says what a task cost, as far as it is known.
func costText(u op.Usage) string {
	switch {
	case u.Priced == 0:
		return "unknown: the table of prices does not have the model"
	case u.Unpriced() > 0:
		return fmt.Sprintf("at least %s: the price of %d tokens is not known", state.Dollars(u.USD), u.Unpriced())
	}
	return state.Dollars(u.USD)
}
