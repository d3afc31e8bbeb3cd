// Command anamnesis-bench measures the program on data that is not in this
// repository.
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

	"anamnesis/cmd/internal/bench/replay"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs one command line and returns the exit code: 2 for wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	started := false // the arguments were in order
	root := &cobra.Command{
		Use:           "anamnesis-bench",
		Short:         "Measure the program on recorded data",
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
	root.AddCommand(replayCommand())
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "anamnesis-bench: %v\n", err)
	if !started || errors.Is(err, replay.ErrUsage) {
		return 2
	}
	return 1
}

func replayCommand() *cobra.Command {
	var o replay.Options
	var asJSON bool
	var answers string
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Replay recorded runs: what was learned answers later failures",
		Long: "Replays recorded runs in their order in time. Each recorded failure asks what was learned from earlier\n" +
			"runs only; afterwards its run is learned from. An answer is right when it suggests what later made the call succeed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Data == "" {
				return fmt.Errorf("%w: no --data; name the directory of the recorded runs", replay.ErrUsage)
			}
			if answers != "" {
				f, failed := os.Create(answers)
				if failed != nil {
					return failed
				}
				defer func() { err = errors.Join(err, f.Close()) }()
				enc := json.NewEncoder(f)
				o.Answer = func(a replay.Answer) error { return enc.Encode(a) }
			}
			r, err := replay.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
			}
			return r.WriteText(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "", "the directory of the recorded runs; only read")
	f.StringSliceVar(&o.Sources, "source", nil, "only these sources")
	f.StringVar(&o.Half, "half", "", "choose or report (default both)")
	f.StringVar(&answers, "answers", "", "write what the memory showed to this file, as score.py reads it")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
