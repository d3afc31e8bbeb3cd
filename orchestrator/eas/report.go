package eas

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/attention"
	"anamnesis/anamnesis/probe"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/tokens"
	"anamnesis/orchestrator/taskdir"
)

// Report stores a finished result for the proposals.
func Report(h taskdir.Home, s attention.EAS, record string, res probe.Result) (ProbeReport, error) {
	rep := ProbeReport{Result: res, At: time.Now().UTC(), Record: record}
	_, score := res.UpTo(res.EAS)
	rep.Interval[0], rep.Interval[1] = probe.Wilson(score.Right, score.N)
	if !res.Done {
		return rep, nil
	}
	row := res.Row(s, rep.At)
	rep.Row = &row
	return rep, saveResult(h, rep)
}

// Accept writes the report's row, if there is one, into the user's overlay.
func (rep *ProbeReport) Accept(h taskdir.Home) error {
	if rep.Row == nil {
		return nil
	}
	rep.Written = h.EASOverlay()
	return PutRow(rep.Written, *rep.Row)
}

// Million formats a number of tokens for users.
func Million(n int) string {
	if n < 1_000_000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1f million", float64(n)/1e6)
}

// Text formats the report for users: the questions as comments, and the row. reply is the
// limit of a reply in tokens.
func (rep ProbeReport) Text(reply int) string {
	w, res := new(strings.Builder), rep.Result
	for _, b := range res.Bases {
		note := ""
		if !b.Kept {
			note = fmt.Sprintf("  dropped: under %.2f", probe.MinBase)
		}
		fmt.Fprintf(w, "# base  %-10s %3d of %3d right%s\n", b.Family, b.Right, b.N, note)
	}
	tests := slices.SortedFunc(slices.Values(res.Tests), func(x, y probe.Test) int { return x.Length - y.Length })
	for _, t := range tests {
		verdict := "fails"
		if t.Passed {
			verdict = "passes"
		}
		if t.TooLong {
			verdict = "refused as too long"
		}
		fmt.Fprintf(w, "# %-16d %3d of %3d right  %s%s\n", t.Length, t.Right, t.N, verdict, familyScores(t))
	}
	fmt.Fprintf(w, "# %d questions asked, %d known from before; %d prompt and %d reply tokens by the provider's count\n", res.Calls, res.Known, res.Usage.Prompt, res.Usage.Completion)
	if res.Cut > 0 {
		fmt.Fprintf(w, "# %d replies ended at --reply-tokens %d and count as wrong: more may be needed\n", res.Cut, reply)
	}
	if rep.Row == nil {
		fmt.Fprintf(w, "# stopped: %.300s\n", quote.Squash(res.Stopped))
		if res.EAS > 0 {
			fmt.Fprintf(w, "# so far: at least %d tokens pass", res.EAS)
			if res.FailsAt > 0 {
				fmt.Fprintf(w, ", %d fail", res.FailsAt)
			}
			fmt.Fprintln(w)
		}
		return w.String()
	}
	fmt.Fprintf(w, "version: 1\nrows:\n  - %s\n", rep.Row.YAML())
	if rep.Written != "" {
		fmt.Fprintf(w, "# written to %s\n", rep.Written)
	} else {
		fmt.Fprintln(w, "# a proposal: 'anamnesis eas reflect' or --accept writes it")
	}
	return w.String()
}

func familyScores(t probe.Test) string {
	var parts []string
	for _, f := range probe.Families() {
		if s := t.Families[f]; s.N > 0 {
			parts = append(parts, fmt.Sprintf("%s %d/%d", f, s.Right, s.N))
		}
	}
	if len(parts) < 2 {
		return ""
	}
	return "  (" + strings.Join(parts, ", ") + ")"
}

// ProbeBar draws a phase of a probe.
func ProbeBar(at probe.Progress) string {
	const wide = 20
	full := wide * at.Done / max(at.Most, 1)
	return fmt.Sprintf("[%s%s] %s: %d of %d right, %d calls, %s tokens", strings.Repeat("#", full), strings.Repeat(".", wide-full),
		at.Phase, at.Right, at.Done, at.Calls, Million(at.Tokens))
}

// ExactCount reports whether encoding is the model's own.
func ExactCount(model, encoding string) bool {
	return tokens.Exact(model) && tokens.EncodingFor(model) == encoding
}

// EncodingNote describes how a model's tokens are counted.
func EncodingNote(model, encoding string) string {
	if ExactCount(model, encoding) {
		return encoding
	}
	return encoding + ", an estimate: the model's own tokenizer is not public or not built in"
}

// CostText describes the possible cost of a run. name is the model's display name.
func CostText(name, lookup, encoding string, o probe.Options) string {
	c, lengths := o.Cost(), o.Lengths()
	calls, most := c.Calls, c.Tokens
	if o.MaxCalls > 0 {
		calls = min(calls, o.MaxCalls)
	}
	if o.MaxTokens > 0 {
		most = min(most, o.MaxTokens)
	}
	text := fmt.Sprintf("probe of %s: texts of %d to %d tokens; at most %d questions and %s tokens (counted in %s, replies at %d each), usually far fewer\n",
		name, lengths[0], lengths[len(lengths)-1], calls, Million(most), EncodingNote(lookup, encoding), o.ReplyTokens)
	if n := o.Record.Len(); n > 0 {
		text += fmt.Sprintf("%d questions were answered in an earlier run and are not asked again (--fresh forgets them)\n", n)
	}
	return text
}
