//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	assets "anamnesis"
	"anamnesis/anamnesis"
	"anamnesis/orchestrator/eas"
	"anamnesis/orchestrator/session"

	"github.com/spf13/cobra"
)

// rowFlags are the values `eas set` gives a row.
type rowFlags struct {
	eas, window            int
	confidence, source, by string
	encoding               string
	project, hasWindow     bool
}

func (a *app) easSetCommand() *cobra.Command {
	var f rowFlags
	cmd := &cobra.Command{
		Use:   "set MODEL --eas N --source TEXT",
		Short: "Write a row of your own, or of the project's",
		Long: `Write a row into your overlay (or, with --project, into .anamnesis/eas.yaml here). MODEL is a model's name
or a pattern such as "my-model*". A row with the same pattern is changed in place; comments and fields of
your own stay. Window and encoding come from the table unless they are given.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.hasWindow = cmd.Flags().Changed("window")
			return a.easSet(strings.TrimSpace(args[0]), f)
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&f.eas, "eas", 0, "effective attention span, tokens")
	fl.IntVar(&f.window, "window", 0, "advertised window, tokens (default: the table's)")
	fl.StringVar(&f.confidence, "confidence", string(anamnesis.ConfidenceLow), "high, medium, low or none")
	fl.StringVar(&f.source, "source", "", "where the number comes from")
	fl.StringVar(&f.by, "by", "user", "who or what says so")
	fl.StringVar(&f.encoding, "encoding", "", "tokenizer to count with (default: the table's)")
	fl.BoolVar(&f.project, "project", false, "write .anamnesis/eas.yaml here instead of your own file")
	a.jsonFlag(cmd, "one JSON object")
	return cmd
}

func (a *app) easSet(model string, f rowFlags) error {
	t, err := a.easTable()
	if err != nil {
		return err
	}
	r, err := newRow(t, model, f)
	if err != nil {
		return err
	}
	path, err := a.easUserFile()
	if err != nil {
		return err
	}
	if f.project {
		path = session.EASProjectFile(".")
	}
	if path == "" {
		return usageError("eas set: neither ANAMNESIS_HOME nor HOME is set: set one, or write the project's table with --project")
	}
	was := t.Row(model)
	if err := eas.PutRow(path, r, f.project); err != nil {
		return err
	}
	if t, err = a.easTable(); err != nil {
		return err
	}
	s := t.Lookup(model)
	shadowed := s.Pattern != r.Pattern || s.Origin != path
	return a.show(map[string]any{"file": path, "row": r, "was": was, "shadowed": shadowed, "in_effect": s}, func() {
		before := "new"
		if was != nil {
			before = fmt.Sprintf("was %d", was.EAS)
		}
		a.printf("%s: eas %d (%s), in %s\n", r.Pattern, r.EAS, before, path)
		if shadowed {
			a.printf("note: %s still goes by the row %s of %s: eas %d\n", model, s.Pattern, s.Origin, s.EAS)
		}
	})
}

// newRow makes a row of the flags and of what the table says already.
func newRow(t *anamnesis.Table, model string, f rowFlags) (anamnesis.Row, error) {
	var none anamnesis.Row
	switch {
	case model == "":
		return none, usageError("eas set: no model named; for example 'anamnesis eas set gpt-4o --eas 8000 --source \"…\"'")
	case anamnesis.Squash(model) != model:
		return none, usageError("eas set %q: a model's name is one line of printable characters", model)
	case f.eas <= 0:
		return none, usageError("eas set %s: --eas is %d, it must be above 0: a number of tokens, like --eas 8000", model, f.eas)
	case strings.TrimSpace(f.source) == "":
		return none, usageError("eas set %s: every row says where its number comes from: add --source", model)
	case !slices.Contains([]anamnesis.Confidence{anamnesis.ConfidenceHigh, anamnesis.ConfidenceMedium, anamnesis.ConfidenceLow, anamnesis.ConfidenceNone}, anamnesis.Confidence(f.confidence)):
		return none, usageError("eas set %s: --confidence %q: use high, medium, low or none", model, f.confidence)
	}
	r := anamnesis.Row{
		Pattern: model, EAS: f.eas, Window: f.window, Encoding: f.encoding, Confidence: anamnesis.Confidence(f.confidence),
		Source: f.source, By: f.by, Updated: time.Now().UTC().Format(time.DateOnly),
	}
	s := t.Lookup(model)
	if known := t.Row(model); known != nil {
		s.Advertised, s.Encoding = known.Window, known.Encoding
	}
	if !f.hasWindow {
		r.Window = s.Advertised
	}
	if r.Encoding == "" {
		r.Encoding = s.Encoding
	}
	switch {
	case r.Window <= 0 && !f.hasWindow:
		return none, usageError("eas set %s: the table does not know this model's window: add --window", model)
	case r.Window <= 0:
		return none, usageError("eas set %s: --window is %d, it must be above 0", model, r.Window)
	case r.EAS > r.Window:
		return none, usageError("eas set %s: --eas %d is larger than the window of %d: a model cannot attend to more than it is given; lower --eas or give --window", model, r.EAS, r.Window)
	}
	return r, nil
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
			base, err := anamnesis.LoadTable(assets.EAS)
			if err != nil {
				return err
			}
			changes := t.Changes(base)
			return a.show(map[string]any{"changes": changes}, func() {
				if len(changes) == 0 {
					a.printf("no overlay changes anything; yours would be %s\n", a.easUserName())
				}
				for _, c := range changes {
					a.printf("%s:%d: %s: eas %s, %s: %s\n", c.Now.Origin, c.Now.Line, c.Now.Pattern, easChange(c), c.Now.Confidence, anamnesis.Squash(c.Now.Source))
				}
			})
		},
	}
	a.jsonFlag(cmd, "one JSON object")
	return cmd
}

// easChange says in a few words how a row's number differs from the built-in.
func easChange(c anamnesis.Change) string {
	var text string
	switch {
	case c.Was != nil && c.Was.EAS == c.Now.EAS:
		text = fmt.Sprintf("%d as built in", c.Now.EAS)
	case c.Was != nil:
		text = fmt.Sprintf("%d → %d", c.Was.EAS, c.Now.EAS)
	case c.Instead != nil && c.Instead.Known:
		text = fmt.Sprintf("%d → %d (was by %s)", c.Instead.EAS, c.Now.EAS, c.Instead.Pattern)
	case c.Instead != nil:
		text = fmt.Sprintf("%d → %d (was unknown)", c.Instead.EAS, c.Now.EAS)
	default:
		text = fmt.Sprintf("%d, a new pattern", c.Now.EAS)
	}
	if c.Was != nil && c.Was.Window != c.Now.Window {
		text += fmt.Sprintf(", window %d → %d", c.Was.Window, c.Now.Window)
	}
	return text
}
