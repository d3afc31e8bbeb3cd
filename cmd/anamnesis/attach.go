//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/console"
	"anamnesis/cmd/internal/exit"
	"anamnesis/orchestrator/session"
)

func (a *app) attachCommand() *cobra.Command {
	return a.onTask(&cobra.Command{
		Use:   "attach [TASK]",
		Short: "Show a running task as it works; steer it, and answer what it asks",
		Long: `Show a task that another process runs, from the beginning of its present step until that process ends.
On a terminal, a line that you type answers what the task asks, as with 'answer', and otherwise goes to the
agent, as with 'say'. /answer TEXT answers, /stop ends the turn, and Ctrl-C leaves the task running.`,
	}, 0, 0, func(cmd *cobra.Command, svc *session.Service, task string, _ []string) error {
		return a.tty().Attach(cmd.Context(), svc, task)
	})
}

func (a *app) stopCommand() *cobra.Command {
	return a.steers(a.onTask(&cobra.Command{
		Use:   "stop [TASK]",
		Short: "End the turn of a running task",
		Long: `End the turn of a task that another process runs. A command that it runs has time to end by itself
(--grace of 'run'); nothing else begins. 'resume' continues the task.`,
	}, 0, 0, func(cmd *cobra.Command, svc *session.Service, task string, _ []string) error {
		if err := svc.Stop(cmd.Context(), task, console.FromTerminal); err != nil {
			return err
		}
		again := exit.InBucket("'anamnesis resume "+task+"'", svc.Home.Remote)
		a.printf("%s ends its turn; %s continues it\n", task, again)
		return nil
	}))
}
