//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"anamnesis/cmd/internal/console"
)

// configureSession gives the command without a verb its flags: it is a session at the terminal.
func (a *app) configureSession(root *cobra.Command) {
	var f agentFlags
	f.register(root)
	f.registerNew(root)
	root.Flags().VisitAll(func(fl *pflag.Flag) {
		fl.Hidden = !slices.Contains([]string{"model", "approval", "dir", "eas", "print", "worktree"}, fl.Name)
	})
	root.Flags().BoolVarP(&f.Last, "continue", "c", false, "continue the latest task of the directory")
	root.Flags().BoolVarP(&f.Pick, "resume", "r", false, "pick a task of the directory to continue")
	root.Use = `anamnesis ["REQUEST"]`
	root.Long = "Agents that go back without forgetting.\n\n" +
		"On a terminal, 'anamnesis' opens a session in the directory, and 'anamnesis \"REQUEST\"' starts one with a\n" +
		"request. It stays after an answer. Text piped into the command is the request, or follows it. The\n" +
		"verbs below are for scripts, and for looking at what was recorded. 'anamnesis run --help' lists all\n" +
		"flags of a session."
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && (f.Quiet || strings.ContainsAny(args[0], " \t\n")) || len(args) == 0 {
			return nil
		}
		return fmt.Errorf("%q is not a request", args[0]) // replaced by what complete adds
	}
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(cmd.Flags().Changed); err != nil {
			return err
		}
		var err error
		if f.Text, err = a.tty().Request(cmd.Context(), strings.Join(args, ""),
			console.Need(!f.Last && !f.Pick)); err != nil {
			return err
		}
		return a.seat().Interact(cmd.Context(), f.Work)
	}
}
