//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/show"
	"anamnesis/orchestrator/session"
)

func (a *app) blameCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "blame FILE",
		Short: "Say why a line is so: the step, call and request that wrote it",
		Long: `Say what wrote each line of a file, as it is now; of FILE:LINE or FILE:LINE-LINE in full. That is a
step with its call and the request, in whichever task; another agent's call; you, between tasks; or, before the
first task, a commit of git. Snapshots decide, not the agent's word, through jumps, renames and commands. Imported
sessions have no snapshots: their recorded edits count where they fit the file, and what cannot be known is said. A
copied file was written by the step that copied it.`,
		Args: cobra.ExactArgs(1),
		RunE: a.withService(func(cmd *cobra.Command, args []string, svc *session.Service) error {
			answer, err := svc.Blame(cmd.Context(), "", args[0])
			if err != nil {
				return err
			}
			return a.show(answer, func() { a.printf("%s", show.Blame(answer)) })
		}),
	}
	return a.jsonFlag(cmd, "a JSON object")
}
