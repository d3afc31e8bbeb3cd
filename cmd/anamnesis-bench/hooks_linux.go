package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/anamnesis-bench/hooks"
)

func hooksCommand() *cobra.Command {
	var o hooks.Options
	cmd := &cobra.Command{
		Use:   "hooks",
		Short: "Measure how long an agent waits for the hooks that record it",
		Long: "Plays the hooks of a Claude Code session in a directory that is made for it, through the wrapper that\n" +
			"'anamnesis install' writes, and measures each from its start to its end.\nRows: " + strings.Join(hooks.Rows(), ", ") + ".",
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&o.Temp, "temp", "", "where the directories are made (default the system's)")
	f.IntVar(&o.Calls, "calls", hooks.DefaultCalls, "how many calls a row has; 65536 directories and cold start a tenth of it")
	f.IntVar(&o.Files, "files", hooks.DefaultFiles, "how many files a directory has")
	f.StringSliceVar(&o.Only, "only", nil, "only these rows")
	f.StringVar(&o.Program, "program", "", "the anamnesis program (default the one beside this program)")
	return measures(cmd, func(ctx context.Context, _ []string) (report, error) {
		if o.Program == "" {
			o.Program = besideThis("anamnesis")
		}
		if o.Program == "" || o.Calls < 1 || o.Files < 1 {
			return nil, fmt.Errorf("%w: name the anamnesis program with --program; --calls and --files are at least 1", errUsage)
		}
		o.Log = logTo(cmd)
		return hooks.Run(ctx, o)
	})
}
