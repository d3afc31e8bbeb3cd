//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/demo"
	"anamnesis/orchestrator/session"
)

func (a *app) demoCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show a task that jumps back without forgetting, and a second one that benefits",
		Long: `Run two tasks on two small Go modules with the same bug. The model's replies are recorded;
files, commands, jump, pass, card and recall are real. Needs the Go toolchain and no network.`,
		RunE: a.withService(func(cmd *cobra.Command, _ []string, svc *session.Service) error {
			d := demo.Demo{Console: a.tty(), Service: svc, Warn: a.warn}
			return d.Run(cmd.Context(), dir, a.getenv("HOME"))
		}),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "keep everything below this directory, which must be new or empty")
	return cmd
}
