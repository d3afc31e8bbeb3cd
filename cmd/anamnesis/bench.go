//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"anamnesis/orchestrator/memorybench"
	"anamnesis/worldstate/worldbench"

	"github.com/spf13/cobra"
)

// benchCommand is the verb family of measurements.
func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the program beside what one would use instead",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.benchWorld(), a.benchMemory())
	return cmd
}

// report is what a measurement came to.
type report interface{ WriteText(io.Writer) error }

// bench runs a measurement and prints its report. An error that wraps usage is
// the caller's mistake.
func (a *app) bench(usage error, json bool, run func(program string, log func(string)) (report, error)) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	r, err := run(program, func(line string) { fmt.Fprintln(a.stderr, "anamnesis: "+line) })
	switch {
	case errors.Is(err, usage):
		return usageError("%v", err)
	case err != nil:
		return err
	case json:
		return a.printJSON(r)
	}
	return r.WriteText(a.stdout)
}

func (a *app) benchWorld() *cobra.Command {
	var o worldbench.Options
	var json bool
	cmd := &cobra.Command{
		Use:   "world",
		Short: "Measure saving and restoring a directory beside git",
		Long: "Copies the directory and lets this program, git, the git commands of other agents, and go-git's Worktree\n" +
			"save and restore the copy in turn. The directory itself is only read.\n" +
			"Rows: " + strings.Join(worldbench.Rows(), ", ") + ".\nSubjects: " + strings.Join(worldbench.Subjects(), ", ") + ".",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Dir == "" {
				return usageError("no directory: name one with --dir")
			}
			return a.bench(worldbench.ErrUsage, json, func(program string, log func(string)) (report, error) {
				o.Program, o.Log = program, log
				return worldbench.Run(cmd.Context(), o)
			})
		},
	}
	cmd.Flags().StringVar(&o.Dir, "dir", "", "the directory to measure on; only read")
	cmd.Flags().StringVar(&o.Temp, "temp", "", "where the copy goes (default beside the directory)")
	cmd.Flags().IntVar(&o.Rounds, "rounds", worldbench.DefaultRounds, "how often each row is measured; first saves a third of it")
	cmd.Flags().StringSliceVar(&o.Only, "only", nil, "only these rows")
	cmd.Flags().StringSliceVar(&o.Against, "against", nil, "only these subjects beside this program and plain git")
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON object")
	return cmd
}

func (a *app) benchMemory() *cobra.Command {
	var o memorybench.Options
	var json bool
	var arms []string
	for _, arm := range memorybench.Arms() {
		arms = append(arms, arm.Name)
	}
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Measure what a memory is worth to an agent that goes back",
		Long: "A simulated agent repairs simulated projects on the real orchestrator; only the way its context is kept differs\n" +
			"between the arms. No network, no model; the same seed gives the same tables. docs/bench-memory.md says how to read them.\n" +
			"Arms: " + strings.Join(arms, ", ") + ".\nParts: " + strings.Join(memorybench.Parts(), ", ") + ".",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Data == "" {
				o.Data = a.getenv("ANAMNESIS_BENCH_DATA")
			}
			return a.bench(memorybench.ErrUsage, json, func(program string, log func(string)) (report, error) {
				o.Program, o.Log = program, log
				return memorybench.Run(cmd.Context(), o)
			})
		},
	}
	cmd.Flags().Uint64Var(&o.Seed, "seed", memorybench.DefaultSeed, "of everything random")
	cmd.Flags().IntVar(&o.Tasks, "tasks", memorybench.DefaultTasks, "tasks of a row of World B")
	cmd.Flags().StringSliceVar(&o.Arms, "arm", nil, "only these arms of World B")
	cmd.Flags().StringSliceVar(&o.Only, "only", nil, "only these parts")
	cmd.Flags().BoolVar(&o.Sweep, "sweep", false, "all corners of compliance, span and depth, not only the headline rows")
	cmd.Flags().StringVar(&o.Data, "data", "", "the folder with the public data (default $ANAMNESIS_BENCH_DATA)")
	cmd.Flags().StringVar(&o.Temp, "temp", "", "where worlds and streams are made (default /dev/shm where there is one)")
	cmd.Flags().IntVar(&o.Workers, "workers", 0, "tasks at once (default one a processor)")
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON object")
	return cmd
}
