//go:build unix

package main

import (
	"strings"

	"github.com/spf13/cobra"

	assets "anamnesis"
	"anamnesis/anamnesis/attention"
	"anamnesis/cmd/internal/exit"
	"anamnesis/orchestrator/eas"
)

func (a *app) easCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eas",
		Short: "Show, measure and review effective attention spans",
		Long: `The table of effective attention spans. Your rows (eas.yaml in $ANAMNESIS_HOME, or in
$XDG_CONFIG_HOME/anamnesis) override the built-in ones, and the project's (.anamnesis/eas.yaml)
override both. Every row names the source of its number.`,
	}
	cmd.AddCommand(a.easListCommand(), a.easShowCommand(), a.easProbeCommand(), a.easReflectCommand())
	return cmd
}

func (a *app) easListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the rows in effect",
		RunE: func(*cobra.Command, []string) error {
			t, err := a.easTable()
			if err != nil {
				return err
			}
			return a.show(map[string]any{"rows": t.Rows(), "unknown_eas": attention.UnknownEAS}, func() { a.out().EASTable(t) })
		},
	}
	return a.jsonFlag(cmd, "one JSON object")
}

func (a *app) easShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show MODEL",
		Short: "Show the table's row for a model",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if strings.TrimSpace(args[0]) == "" {
				return exit.Usagef("eas show: no model named; for example 'anamnesis eas show gpt-4o', and 'anamnesis eas list' shows every row")
			}
			t, err := a.easTable()
			if err != nil {
				return err
			}
			s := t.Lookup(args[0])
			return a.show(s, func() { a.out().EAS(s, a.easUserName(), eas.EncodingNote(s.Model, s.Encoding)) })
		},
	}
	return a.jsonFlag(cmd, "one JSON object")
}

// tables returns the tables in effect here.
func (a *app) tables() (eas.Tables, error) {
	t := eas.Tables{Builtin: assets.EAS, Dir: "."}
	if a.getenv("ANAMNESIS_HOME") == "" && a.getenv("HOME") == "" {
		return t, nil
	}
	h, err := a.home()
	return t.InHome(h), err
}

// easTable returns the table in effect here.
func (a *app) easTable() (*attention.Table, error) {
	t, err := a.tables()
	if err != nil {
		return nil, err
	}
	return t.Load()
}

// easUserName returns the name of the user's own rows for output.
func (a *app) easUserName() string {
	t, err := a.tables()
	if err != nil {
		return eas.Tables{}.OwnName()
	}
	return t.OwnName()
}
