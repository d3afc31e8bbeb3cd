//go:build unix

package main

import (
	"errors"
	"os/exec"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/acp"
	"anamnesis/cmd/internal/exit"
)

// acpCommand is the family of verbs that speak the Agent Client Protocol.
func (a *app) acpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Stand between an editor and a coding agent",
		Long:  "Stand between an editor and a coding agent that speak the Agent Client Protocol.",
	}
	cmd.AddCommand(a.acpProxyCommand())
	return cmd
}

func (a *app) acpProxyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "proxy -- COMMAND…",
		Short: "Record an agent's sessions in an editor, and offer them jumps and cards",
		Long: `Start COMMAND, an agent that speaks the Agent Client Protocol on standard input and output, and forward what it and the editor
say. In the editor's configuration this command takes the agent's place; nothing else is configured. Each call becomes an operation
and each step a snapshot; cards enter with prompts; /jump STEP, /timeline and /cards TEXT are answered here. What is not known is
forwarded byte for byte. A session that the agent's own hooks record is only forwarded.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := a.service()
			if err != nil {
				return err
			}
			err = acp.Run(cmd.Context(), svc, a.recorders(svc), args, a.stdin, a.stdout, a.stderr)
			if ended := new(exec.ExitError); errors.As(err, &ended) {
				return exit.With(max(ended.ExitCode(), 1), err)
			}
			if missing := new(exec.Error); errors.As(err, &missing) {
				return exit.Usagef("acp proxy: the agent's command cannot be started: %w; install it, or name its path", missing)
			}
			return err
		},
	}
}
