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
	"anamnesis/orchestrator/inspect"
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
				v, err := inspect.Describe(h, args[0])
				if err != nil {
					return err
				}
				return a.show(v, func() { a.printTask(v) })
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

func (a *app) printTask(v inspect.Task) {
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
