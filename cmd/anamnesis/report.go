//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/reportview"
	"anamnesis/orchestrator/session"
)

func (a *app) reportCommand() *cobra.Command {
	var long, md bool
	cmd := a.onTask(&cobra.Command{
		Use:   "report [TASK]",
		Short: "Say what happened in a task: the outcome, the paths that were left and why, files, tests, cost",
		Long: `Say what happened in a task, on one screen: what was asked, how it ended, what the tests said, each
path that was left and why, the files that changed since the beginning, what was done outside of the directory, time
and cost. Each line names the operation that it rests on: 'anamnesis show TASK SEQ' opens it.`,
	}, 0, 0, func(cmd *cobra.Command, svc *session.Service, task string, _ []string) error {
		r, err := svc.Report(cmd.Context(), task)
		if err != nil {
			return err
		}
		return a.show(r, func() {
			a.printf("%s", reportview.Text(r,
				reportview.Options{Long: long, Markdown: md, Columns: a.tty().Width(), Remote: a.printer.Remote}))
		})
	})
	cmd.Flags().BoolVar(&long, "long", false, "all lines of each list, uncut")
	cmd.Flags().BoolVar(&md, "md", false, "as markdown")
	return a.jsonFlag(cmd, "a JSON object")
}
