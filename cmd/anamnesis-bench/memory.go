//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	assets "anamnesis"
	"anamnesis/cmd/internal/bench/extractor"
	"anamnesis/cmd/internal/bench/live"
	"anamnesis/cmd/internal/bench/memory"
	"anamnesis/orchestrator/session"
)

func memoryCommand() *cobra.Command {
	var o memory.Options
	var m live.Options
	var arms []string
	for _, arm := range memory.Arms() {
		arms = append(arms, arm.Name)
	}
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Measure the effect of a memory on an agent that jumps back",
		Long: "A simulated agent repairs simulated projects on the real orchestrator; only the management of its context differs\n" +
			"between the arms. No network, no model; the same seed makes the same tables. docs/design/bench-memory.md says how to read them.\n" +
			"With --model, a real model plays four small worlds and twelve pairs of repositories instead, with and without the memory. It\n" +
			"may cost --max-cost; the same command continues an interrupted run.\n" +
			"Arms: " + strings.Join(arms, ", ") + ".\nParts: " + strings.Join(memory.Parts(), ", ") + ".",
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.Uint64Var(&o.Seed, "seed", memory.DefaultSeed, "of everything random")
	f.IntVar(&o.Tasks, "tasks", memory.DefaultTasks, "tasks of a row of World B")
	f.StringSliceVar(&o.Arms, "arm", nil, "only these arms of World B")
	f.StringSliceVar(&o.Only, "only", nil, "only these parts")
	f.BoolVar(&o.Sweep, "sweep", false, "all corners of compliance, span and depth, not only the headline rows")
	f.StringVar(&o.Temp, "temp", "", "where worlds and streams are made (default /dev/shm where there is one)")
	f.IntVar(&o.Workers, "workers", 0, "tasks at once (default one a processor)")
	f.StringVar(&m.Model, "model", "", "ask this model: a name, or script:FILE")
	f.StringVar(&m.BaseURL, "base-url", "", "of an OpenAI-compatible server (default $OPENAI_BASE_URL)")
	f.Float64Var(&m.MaxCostUSD, "max-cost", 0, "US dollars that --model may cost, by the table of prices")
	f.StringVar(&m.Dir, "out", "bench-memory-model", "the directory of the results and transcripts of --model")
	f.StringVar(&m.Sandbox, "sandbox", "", "of the commands of --model; see anamnesis run --help")
	return measures(cmd, func(ctx context.Context, _ []string) (report, error) {
		program, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		o.Program, o.Log = program, logTo(cmd)
		if m.Model != "" {
			m.Seed, m.Program, m.Log = o.Seed, program, o.Log
			return askModel(ctx, m)
		}
		if m.MaxCostUSD != 0 {
			return nil, fmt.Errorf("%w: --max-cost needs --model", errUsage)
		}
		return memory.Run(ctx, o)
	})
}

// askModel runs the bench with a real model, in the user's own configuration.
func askModel(ctx context.Context, o live.Options) (report, error) {
	if !(o.MaxCostUSD > 0) {
		return nil, fmt.Errorf("%w: --model asks a model that may cost money; say how much with --max-cost, such as --max-cost 5", errUsage)
	}
	svc, err := session.New(session.Options{Version: "bench", EAS: assets.EAS})
	if err != nil {
		return nil, err
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	return live.Run(ctx, svc, o)
}

func extractorCommand() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "extractor",
		Short: "Measure the blocks of the deterministic extractor on recorded runs",
		Long:  "Runs the extractor over the recorded conversations and the recorded coding session in --data and counts which failed\ncalls its blocks describe, cite or point to. No model is asked.",
		Args:  cobra.NoArgs,
	}
	cmd.Flags().StringVar(&data, "data", os.Getenv("ANAMNESIS_BENCH_DATA"), "the directory with the public data; only read")
	return measures(cmd, func(ctx context.Context, _ []string) (report, error) {
		if data == "" {
			return nil, fmt.Errorf("%w: no recorded runs; name their directory with --data or ANAMNESIS_BENCH_DATA", errUsage)
		}
		return extractor.Run(ctx, data)
	})
}
