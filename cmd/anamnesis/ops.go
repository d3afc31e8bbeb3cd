//go:build unix

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/stream"
	"anamnesis/opstream"
)

// opsCommand is the plumbing of operation streams, for scripts.
func (a *app) opsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ops",
		Short: "Read, verify and follow an operation stream",
	}
	cmd.AddCommand(a.opsCatCommand(), a.opsVerifyCommand())
	return cmd
}

// opsVerb makes cmd a verb over the stream that --dir names.
func (a *app) opsVerb(cmd *cobra.Command, do func(ctx context.Context, dir string) error) *cobra.Command {
	var dir string
	cmd.Flags().StringVar(&dir, "dir", "", "directory of the stream (required)")
	a.jsonFlag(cmd, "one JSON object a line")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if dir == "" {
			return exit.Usagef("name the stream's directory with --dir; see '%s --help'", cmd.CommandPath())
		}
		return exit.Stream(do(cmd.Context(), dir))
	}
	return cmd
}

func (a *app) opsCatCommand() *cobra.Command {
	var kind string
	var after uint64
	var follow bool
	cmd := &cobra.Command{
		Use:   "cat --dir DIR",
		Short: "Print the operations of a stream, all or those of a kind",
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false,
		"print new operations as they are written, until interrupted; those not known to be durable yet are marked")
	cmd.Flags().Uint64Var(&after, "after", 0, "print only operations after this number")
	cmd.Flags().StringVar(&kind, "kind", "", "only operations of this kind")
	return a.opsVerb(cmd, func(ctx context.Context, dir string) error {
		torn, err := stream.Cat(ctx, a.stdout, dir, after, kind, a.json, follow)
		if torn != nil {
			a.notef("the end is torn, or being written: %s", torn)
		}
		return err
	})
}

func (a *app) opsVerifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify --dir DIR",
		Short: "Verify every line and blob of a stream",
		Long: `Verify every line and blob of a stream, and print one line for each finding. The exit code is 4
if acknowledged operations are damaged, and 1 if only the end is torn, which the next writer
sets aside.`,
	}
	return a.opsVerb(cmd, func(ctx context.Context, dir string) error {
		done := a.line().Working("verifying the stream")
		r, err := opstream.Verify(ctx, dir)
		done()
		if err != nil {
			return err
		}
		if err := a.show(r, func() { a.out().StreamReport(r) }); err != nil {
			return err
		}
		switch {
		case r.Has(opstream.SeverityCorrupt):
			return exit.With(exit.Corrupt, fmt.Errorf(
				"%s is corrupt: acknowledged operations are damaged; 'anamnesis ops cat' prints the intact part", dir))
		case r.Has(opstream.SeverityTorn):
			return exit.With(exit.Failed, fmt.Errorf(
				"the end of %s is torn: the next writer sets the damaged bytes aside", dir))
		}
		return nil
	})
}
