//go:build unix

package main

import (
	"strings"

	"github.com/spf13/cobra"

	assets "anamnesis"
	"anamnesis/anamnesis/attention"
	"anamnesis/orchestrator/eas"
)

func (a *app) easSetCommand() *cobra.Command {
	var f eas.NewRow
	var window int
	var project bool
	cmd := &cobra.Command{
		Use:   "set MODEL --eas N --source TEXT",
		Short: "Write a row into your overlay or the project's",
		Long: `Write a row into your overlay (or, with --project, into .anamnesis/eas.yaml here). MODEL is a
model's name or a pattern such as "my-model*". A row with the same pattern is changed in place;
comments and your own fields stay. Window and encoding default to the table's.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Model = strings.TrimSpace(args[0]); cmd.Flags().Changed("window") {
				f.Window = &window
			}
			t, err := a.tables()
			if err != nil {
				return err
			}
			w, err := t.Set(f, project)
			if err != nil {
				return err
			}
			return a.show(w, func() { a.out().EASRow(w) })
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&f.EAS, "eas", 0, "effective attention span, tokens")
	fl.IntVar(&window, "window", 0, "advertised window, tokens (default: the table's)")
	fl.StringVar(&f.Confidence, "confidence", string(attention.ConfidenceLow), "high, medium, low or none")
	fl.StringVar(&f.Source, "source", "", "where the number comes from")
	fl.StringVar(&f.By, "by", "user", "author of the row")
	fl.StringVar(&f.Encoding, "encoding", "", "tokenizer to count with (default: the table's)")
	fl.BoolVar(&project, "project", false, "write .anamnesis/eas.yaml here instead of your own file")
	return a.jsonFlag(cmd, "one JSON object")
}

func (a *app) easDiffCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "Show what overlays change against the built-in table",
		RunE: func(*cobra.Command, []string) error {
			t, err := a.easTable()
			if err != nil {
				return err
			}
			base, err := attention.LoadTable(assets.EAS)
			if err != nil {
				return err
			}
			changes := t.Changes(base)
			return a.show(map[string]any{"changes": changes}, func() { a.out().EASChanges(changes, a.easUserName()) })
		},
	}
	return a.jsonFlag(cmd, "one JSON object")
}
