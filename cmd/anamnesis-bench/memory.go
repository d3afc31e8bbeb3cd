//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/bench/extractor"
	"anamnesis/cmd/internal/bench/memory"
)

func memoryCommand() *cobra.Command {
	var o memory.Options
	var arms []string
	for _, arm := range memory.Arms() {
		arms = append(arms, arm.Name)
	}
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Measure what a memory is worth to an agent that goes back",
		Long: "A simulated agent repairs simulated projects on the real orchestrator; only the way its context is kept differs\n" +
			"between the arms. No network, no model; the same seed gives the same tables. docs/design/bench-memory.md says how to read them.\n" +
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
	return measures(cmd, func(ctx context.Context, _ []string) (report, error) {
		program, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		o.Program, o.Log = program, logTo(cmd)
		return memory.Run(ctx, o)
	})
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
