//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/anamnesis-bench/world"
)

func worldCommand() *cobra.Command {
	var o world.Options
	cmd := &cobra.Command{
		Use:   "world",
		Short: "Measure saving and restoring a directory beside git",
		Long: "Copies the directory and lets this program and git save and restore the copy in turn.\n" +
			"The directory itself is only read.\n" +
			"Rows: " + strings.Join(world.Rows(), ", ") + ".\nSubjects: " + strings.Join(world.Subjects(), ", ") + ".",
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", "", "the directory to measure on; only read")
	f.StringVar(&o.Temp, "temp", "", "where the copy goes (default beside the directory)")
	f.IntVar(&o.Rounds, "rounds", world.DefaultRounds, "how often each row is measured; first saves a third of it")
	f.StringSliceVar(&o.Only, "only", nil, "only these rows")
	f.StringVar(&o.Program, "program", "", "the anamnesis program of the subject cli (default the one beside this program)")
	return measures(cmd, func(ctx context.Context, _ []string) (report, error) {
		if o.Dir == "" {
			return nil, fmt.Errorf("%w: no directory: name one with --dir", errUsage)
		}
		o.Log = logTo(cmd)
		if o.Program == "" {
			o.Program = besideThis("anamnesis")
		}
		if o.Program == "" {
			o.Log("no anamnesis program beside this one: the subject cli is left out; name one with --program")
		}
		return world.Run(ctx, o)
	})
}

// besideThis returns the path of a program in the folder of this one, or "".
func besideThis(name string) string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	path := filepath.Join(filepath.Dir(self), name)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}
