//go:build unix

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	view "anamnesis/cmd/internal/term"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/taskdir"
)

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain TASK [STEP]",
		Short: "Say why a task's context looks as it does",
		Long: "List the messages the model is sent next, each with the operations it comes from, its tokens, and the rule by which it was\n" +
			"masked, folded or carried over. With STEP: the context as it stood when that step had ended.",
		Args: cobra.RangeArgs(1, 2),
		RunE: a.withHome(func(_ *cobra.Command, args []string, h taskdir.Home) error {
			step := -1
			if len(args) == 2 {
				var err error
				if step, err = parseStep(args[1]); err != nil {
					return err
				}
			}
			x, err := inspect.Explain(h, args[0], step)
			if err != nil {
				return err
			}
			return a.show(x, func() { a.printExplanation(x) })
		}),
	}
	a.jsonFlag(cmd, "a JSON object")
	return cmd
}

// maxExplainedRanges is how many ranges of one change are named.
const maxExplainedRanges = 8

func (a *app) printExplanation(x inspect.Explanation) {
	// say prints a line: what stands in columns as it is, the text as far as
	// there is room.
	say := func(columns, text string) {
		a.println(strings.TrimRight(columns+view.Line(text, max(a.width()-len(columns), 20)), " "))
	}
	window := "unknown"
	if x.Window > 0 {
		window = fmt.Sprint(x.Window)
	}
	say("", fmt.Sprintf("%s · step %d, op %d · EAS %d · window %s", x.Task, x.Step, x.Op, x.EAS, window))
	say("", fmt.Sprintf("%d tokens in %d messages; above %d, the tools' descriptions included, old results are masked", x.Tokens, len(x.Messages), x.Limit))
	for i, todo := range x.Todos {
		if i == 0 {
			say("", "todo list, "+op.TodosSummary(x.Todos))
		}
		say("  ", todo.String())
	}
	say("\n  #  role        tokens      op  step  ", "what")
	for i, m := range x.Messages {
		for k, p := range m.Parts {
			number, role := "", ""
			if k == 0 {
				number, role = fmt.Sprint(i+1), string(m.Role)
			}
			say(fmt.Sprintf("%3s  %-9s  %7d  %6d  %4d  ", number, role, p.Tokens, p.Op, p.Step), fmt.Sprintf("%s: %s", p.Kind, p.Text))
			if p.Why != "" {
				say(strings.Repeat(" ", 12)+"- ", p.Why)
			}
		}
	}
	if len(x.Changes) == 0 {
		say("\n", "Nothing was masked, folded or carried over.")
		return
	}
	say("\n", "What was masked, folded or carried over:")
	for _, c := range x.Changes {
		say(fmt.Sprintf("%6d  ", c.Op), fmt.Sprintf("%s: %s", c.Kind, c.Rule))
		var out []string
		if len(c.Out) > 0 {
			out = append(out, "out went ops "+rangesText(c.Out))
		}
		if c.Saved > 0 {
			out = append(out, fmt.Sprintf("%d tokens freed", c.Saved))
		}
		if c.After != 0 {
			out = append(out, fmt.Sprintf("its block was folded in turn by op %d", c.After))
		}
		if len(out) > 0 {
			say("        ", strings.Join(out, "; "))
		}
	}
}

func rangesText(rs []op.Range) string {
	var parts []string
	for i, r := range rs {
		if i == maxExplainedRanges {
			parts = append(parts, fmt.Sprintf("and %d more", len(rs)-i))
			break
		}
		parts = append(parts, r.String())
	}
	return strings.Join(parts, ", ")
}
