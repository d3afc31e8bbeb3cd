package eas

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/attention"
	"anamnesis/anamnesis/quote"
	"anamnesis/orchestrator/session"
)

// NewRow is a row that a user enters. If empty, Window and Encoding come from the table.
type NewRow struct {
	Model                  string
	EAS                    int
	Window                 *int
	Confidence, Source, By string
	Encoding               string
}

// Row returns the row for a table, or a *session.UsageError.
func (n NewRow) Row(t *attention.Table) (attention.Row, error) {
	refuse := func(format string, args ...any) (attention.Row, error) {
		return attention.Row{}, session.Usagef("eas set %s: "+format, append([]any{n.Model}, args...)...)
	}
	switch {
	case n.Model == "":
		return attention.Row{}, session.Usagef("eas set: no model named; for example 'anamnesis eas set gpt-4o --eas 8000 --source \"…\"'")
	case quote.Squash(n.Model) != n.Model:
		return attention.Row{}, session.Usagef("eas set %q: a model's name is one line of printable characters", n.Model)
	case n.EAS <= 0:
		return refuse("--eas is %d, it must be above 0: a number of tokens, like --eas 8000", n.EAS)
	case strings.TrimSpace(n.Source) == "":
		return refuse("every row names the origin of its number: add --source")
	case !slices.Contains([]attention.Confidence{attention.ConfidenceHigh, attention.ConfidenceMedium, attention.ConfidenceLow, attention.ConfidenceNone}, attention.Confidence(n.Confidence)):
		return refuse("--confidence %q: use high, medium, low or none", n.Confidence)
	}
	r := attention.Row{
		Pattern: n.Model, EAS: n.EAS, Encoding: n.Encoding, Confidence: attention.Confidence(n.Confidence),
		Source: n.Source, By: n.By, Updated: time.Now().UTC().Format(time.DateOnly),
	}
	s := t.Lookup(n.Model)
	if known := t.Row(n.Model); known != nil {
		s.Advertised, s.Encoding = known.Window, known.Encoding
	}
	if r.Encoding == "" {
		r.Encoding = s.Encoding
	}
	if r.Window = s.Advertised; n.Window != nil {
		r.Window = *n.Window
	}
	switch {
	case r.Window <= 0 && n.Window == nil:
		return refuse("the table does not know this model's window: add --window")
	case r.Window <= 0:
		return refuse("--window is %d, it must be above 0", r.Window)
	case r.EAS > r.Window:
		return refuse("--eas %d is larger than the window of %d: a model cannot attend to more than its window; lower --eas or give --window", r.EAS, r.Window)
	}
	return r, nil
}

// ChangeText describes in a few words how a row's number differs from the built-in.
func ChangeText(c attention.Change) string {
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
