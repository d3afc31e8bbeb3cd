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

	"anamnesis/cmd/internal/bench/depot"
	"anamnesis/cmd/internal/bench/live"
	"anamnesis/cmd/internal/bench/loops"
	"anamnesis/cmd/internal/bench/memory"
	"anamnesis/cmd/internal/bench/replay"
	"anamnesis/cmd/internal/bench/world"
	"anamnesis/orchestrator/guard"
)

func main() {
	guard.SuperviseMain() // returns at once, unless this process is a command's supervisor
	depot.CommandMain()   // or runs a command of the simulated projects
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
	root.AddCommand(extractorCommand(), hooksCommand(), loopsCommand(), memoryCommand(), replayCommand(), worldCommand())
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "anamnesis-bench: %v\n", err)
	if !started {
		return 2
	}
	for _, usage := range []error{errUsage, live.ErrUsage, loops.ErrUsage, memory.ErrUsage, replay.ErrUsage, world.ErrUsage} {
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

func loopsCommand() *cobra.Command {
	return measures(&cobra.Command{
		Use:   "loops PATH…",
		Short: "Compare the loop detector with the rules of other agents",
		Long: "Compares the loop detector with the loop rules of five other agents on recorded runs: folders of tasks, and the\n" +
			"files that 'anamnesis loops' reads. Prints the first call at which each rule fires; 0 means never.",
		Args: cobra.MinimumNArgs(1),
	}, func(_ context.Context, args []string) (report, error) { return loops.Run(args) })
}
