//go:build unix

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/console"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/seat"
)

func (a *app) runCommand() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   `run "REQUEST"`,
		Short: "Run an agent on a request",
		Long: `Run an agent on a request in a directory, which becomes its reversible world. Text piped into the
command follows the request, or is the request if that is -. On a terminal, typed lines steer the agent. Ctrl-C ends
the turn; twice, it leaves at once. 'resume' continues.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(args[0]) == "" {
				return exit.Usagef("the request is empty")
			}
			if err := f.check(cmd.Flags().Changed); err != nil {
				return err
			}
			var err error
			if f.Text, err = a.tty().Request(cmd.Context(), args[0], console.Required); err != nil {
				return err
			}
			return a.seat().Run(cmd.Context(), f.Work)
		},
	}
	f.register(cmd)
	f.registerNew(cmd)
	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "resume [TASK] [MESSAGE]",
		Short: "Continue a task, after its end, an interruption or a crash",
		Long: `Continue a task from its last acknowledged operation. Without TASK, the directory's last task
continues. A call that was running when the program was killed is reported with unknown outcome
and not repeated. With --dir the task continues in that directory: its own was moved or copied. A task that a bucket
keeps waits for the bucket; --detach continues a copy without it.`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd.Flags().Changed); err != nil {
				return err
			}
			if f.Remote.Detach && f.Remote.Address != "" {
				return exit.Usagef("--detach and --remote exclude each other: give one of them")
			}
			if cmd.Flags().Changed("dir") {
				f.TaskDir = f.Dir
			}
			return a.seat().Resume(cmd.Context(), f.Work, args)
		},
	}
	f.register(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.Remote.Now, "now", false, "with --remote, take the task at once: no other process works on it")
	fl.BoolVar(&f.Remote.Detach, "detach", false, "continue a copy of TASK, under a new name, that no bucket keeps")
	return cmd
}

// seat returns this process's terminal with the program's state.
func (a *app) seat() *seat.Seat {
	return &seat.Seat{Console: a.tty(), Configured: a.configured, Warn: a.warn, Version: version}
}

func (a *app) warn(texts ...string) { a.out().Warn(texts...) }
