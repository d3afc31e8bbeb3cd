//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"anamnesis/cmd/anamnesis-bench/replay"
)

func replayCommand() *cobra.Command {
	var o replay.Options
	var answers, told string
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Answer recorded failures from the pairs of earlier runs",
		Long: "Replays recorded runs in their order in time. Each recorded failure asks what was learned from earlier\n" +
			"runs only; afterwards its run is learned from. The data's own judge scores the answers: score.py eval FILE.",
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "", "the directory of the recorded runs; only read")
	f.StringSliceVar(&o.Sources, "source", nil, "only these sources")
	f.StringVar(&answers, "answers", "", "write the answers to this file, as score.py reads it")
	f.StringVar(&told, "facts", "", "write what a task of each run would be shown at its start, as facts.py reads it; needs --source")
	return measures(cmd, func(ctx context.Context, _ []string) (_ report, err error) {
		if o.Data == "" {
			return nil, fmt.Errorf("%w: no --data; name the directory of the recorded runs", errUsage)
		}
		if name := cmp.Or(told, answers); name != "" {
			f, failed := os.Create(name)
			if failed != nil {
				return nil, failed
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			enc := json.NewEncoder(f)
			if told != "" {
				return replay.Facts(ctx, o, func(t replay.Told) error { return enc.Encode(t) })
			}
			o.Answer = func(a replay.Answer) error { return enc.Encode(a) }
		}
		return replay.Run(ctx, o)
	})
}
