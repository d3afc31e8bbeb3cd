//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/recorder"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
)

// hookCommand is what the wrapper in an agent's configuration runs. It never fails towards the
// agent: standard error is empty, and standard output is empty or one reply.
func (a *app) hookCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "hook AGENT",
		Short:  "Record an event of another agent, given on standard input",
		Hidden: true,
		Args:   cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || !beside.Recorded(sessions.Agent(args[0])) {
				return nil
			}
			if svc, err := a.service(); err == nil { // the error cannot be shown here; doctor finds it
				recorder.Hook(cmd.Context(), svc, sessions.Agent(args[0]), a.stdin, a.stdout)
			}
			return nil
		},
	}
}

func (a *app) recorderCommand() *cobra.Command {
	return &cobra.Command{
		Use:    recorder.Verb + " DIR",
		Short:  "Record the sessions of other agents in a directory; started by hooks",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: a.withService(func(cmd *cobra.Command, args []string, svc *session.Service) error {
			return recorder.Run(cmd.Context(), svc, args[0])
		}),
	}
}
