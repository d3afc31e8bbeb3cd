//go:build unix

package main

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	assets "anamnesis"
	"anamnesis/anamnesis/attention"
	"anamnesis/cmd/internal/exit"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/session"
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
			t, _, err := a.easTable()
			if err != nil {
				return err
			}
			return a.show(map[string]any{"rows": t.Rows(), "unknown_eas": attention.UnknownEAS},
				func() { a.out().EASTable(t) })
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
				return exit.Usagef("eas show: no model named; for example 'anamnesis eas show gpt-4o', and " +
					"'anamnesis eas list' shows every row")
			}
			t, own, err := a.easTable()
			if err != nil {
				return err
			}
			s := t.Lookup(args[0])
			return a.show(s, func() { a.out().EAS(s, own) })
		},
	}
	return a.jsonFlag(cmd, "one JSON object")
}

// easTable returns the table in effect here, and the name of the user's own rows. Without a home
// the user has none.
func (a *app) easTable() (t *attention.Table, own string, err error) {
	var trust *consent.Trust
	if a.getenv("ANAMNESIS_HOME") != "" || a.getenv("HOME") != "" {
		h, err := a.home()
		if err != nil {
			return nil, "", err
		}
		own, trust = h.EASOverlay(), consent.OpenTrust(h.Approvals())
	}
	t, err = session.LoadEAS(assets.EAS, own, trust, ".")
	return t, cmp.Or(own, "eas.yaml in $ANAMNESIS_HOME"), err
}
