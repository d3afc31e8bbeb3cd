//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/session"
)

func (a *app) explainCommand() *cobra.Command {
	cmd := a.onTask(&cobra.Command{
		Use:   "explain [TASK] [STEP]",
		Short: "Explain why a task's context looks as it does",
		Long: `List the messages that the model is sent next, each with the operations it comes from, its
tokens, and the rule by which it was masked, compacted or carried over. With STEP: the context at
the end of that step.`,
	}, 0, 1, func(_ *cobra.Command, svc *session.Service, task string, rest []string) error {
		step := -1
		if len(rest) == 1 {
			var err error
			if step, err = parseStep(rest[0]); err != nil {
				return err
			}
		}
		x, err := inspect.Explain(svc.Home, task, step)
		if err != nil {
			return err
		}
		return a.show(x, func() { a.out().Explanation(x) })
	})
	return a.jsonFlag(cmd, "a JSON object")
}
