//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/taskdir"
)

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain TASK [STEP]",
		Short: "Explain why a task's context looks as it does",
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
			return a.show(x, func() { a.out().Explanation(x) })
		}),
	}
	a.jsonFlag(cmd, "a JSON object")
	return cmd
}
