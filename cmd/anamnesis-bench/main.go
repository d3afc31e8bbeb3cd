//go:build unix

// Command anamnesis-bench measures the program.
//
// This package holds flags and wiring only.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"anamnesis/cmd/anamnesis-bench/replay"
	"anamnesis/cmd/anamnesis-bench/world"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// errUsage is wrapped by errors in the command line.
var errUsage = errors.New("usage")

// run runs one command line and returns the exit code: 2 for wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	started := false // the arguments were in order
	root := &cobra.Command{
		Use:           "anamnesis-bench",
		Short:         "Measure the program",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		PersistentPreRun: func(*cobra.Command, []string) { started = true },
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(hooksCommand(), replayCommand(), worldCommand())
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "anamnesis-bench: %v\n", err)
	if !started {
		return 2
	}
	for _, usage := range []error{errUsage, replay.ErrUsage, world.ErrUsage} {
		if errors.Is(err, usage) {
			return 2
		}
	}
	return 1
}

// report is the result of a measurement.
type report interface{ WriteText(io.Writer) error }

// measures makes cmd print the report that run returns, as text or with --json.
func measures(cmd *cobra.Command, run func(ctx context.Context, args []string) (report, error)) *cobra.Command {
	var asJSON bool
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := run(cmd.Context(), args)
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
		}
		return r.WriteText(cmd.OutOrStdout())
	}
	return cmd
}

// logTo returns a function that writes lines of progress to cmd's stderr.
func logTo(cmd *cobra.Command) func(string) {
	return func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), "anamnesis-bench: "+line) }
}
