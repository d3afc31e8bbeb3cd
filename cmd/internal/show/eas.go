//go:build unix

package show

import (
	"fmt"
	"text/tabwriter"

	"anamnesis/anamnesis/attention"
	"anamnesis/anamnesis/probe"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/tokens"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/eas"
)

func (o *Printer) EASTable(t *attention.Table) {
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PATTERN\tWINDOW\tEAS\tCONFIDENCE\tSOURCE")
	for _, r := range t.Rows() {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\n", r.Pattern, r.Window, r.EAS, r.Confidence, quote.Squash(r.Source))
	}
	fmt.Fprintf(w, "(any other)\t\t%d\t%s\tdefault\n", attention.UnknownEAS, attention.ConfidenceNone)
	o.wrote(0, w.Flush())
}

// EAS prints what the table says about a model. own is the user's file of rows.
func (o *Printer) EAS(s attention.EAS, own string) {
	if !s.Known && s.Origin == "" {
		o.Printf("%s: unknown model, so %d tokens are assumed; a row in %s names another number\n",
			quote.Squash(s.Model), s.EAS, own)
		o.ignored(s)
		return
	}
	o.Printf("%s: attends to %d of %d tokens\n", quote.Squash(s.Model), s.EAS, s.Advertised)
	o.Printf("  row         %s (%s)\n", s.Pattern, s.Origin)
	o.Printf("  source      %s\n", quote.Squash(s.Source))
	o.Printf("  confidence  %s\n", s.Confidence)
	o.Printf("  updated     %s by %s\n", s.Updated, quote.Squash(s.By))
	o.Printf("  counted in  %s\n", countedIn(s.Model, s.Encoding))
	o.ignored(s)
}

// ignored says which larger EAS a project's rows name.
func (o *Printer) ignored(s attention.EAS) {
	if s.Ignored > 0 {
		o.Printf("  (the project's eas.yaml says %d: not approved, does not count; 'anamnesis config "+
			"approve' shows it)\n", s.Ignored)
	}
}

func countedIn(model, encoding string) string {
	if tokens.Exact(model) && tokens.EncodingFor(model) == encoding { // the model's own
		return encoding
	}
	return encoding + ", an estimate: the model's own tokenizer is not public or not built in"
}

// EASProbe prints what a probe measured, as comments, and its row. reply is the limit of a reply
// in tokens.
func (o *Printer) EASProbe(rep eas.ProbeReport, reply int) {
	res := rep.Result
	for _, t := range res.Tests {
		verdict := "fails"
		if t.Passed {
			verdict = "passes"
		}
		if t.TooLong {
			verdict = "refused as too long"
		}
		o.Printf("# %6d tokens  %3d of %3d right  %s\n", t.Length, t.Right, t.N, verdict)
	}
	o.Printf("# %d texts asked about; %d prompt and %d reply tokens by the provider's count\n", res.Calls,
		res.Usage.Prompt, res.Usage.Completion)
	if res.Cut > 0 {
		o.Printf("# %d replies ended at --reply-tokens %d and count as wrong: more may be needed\n", res.Cut, reply)
	}
	if rep.Row == nil {
		o.Printf("# stopped: %.300s\n", quote.Squash(res.Stopped))
		return
	}
	o.Printf("version: 1\nrows:\n  - %s\n", rep.Row.YAML())
	if rep.Written != "" {
		o.Printf("# written to %s\n", rep.Written)
	} else {
		o.Println("# a proposal: 'anamnesis eas reflect' or --accept writes it")
	}
}

// EASProbeCost prints to standard error the most that a probe of a model can cost. name is the
// model's name for users, s what the table says of it.
func (o *Printer) EASProbeCost(name string, s attention.EAS, p probe.Options) {
	lengths := p.Lengths()
	calls, tokens := p.Cost()
	fmt.Fprintf(o.Err,
		"probe of %s: texts of %d to %d tokens; at most %d texts and %s tokens (counted in %s, replies at %d each)\n",
		name, lengths[0], lengths[len(lengths)-1], calls, million(tokens),
		countedIn(s.Model, s.Encoding), p.ReplyTokens)
}

func EASProbeBar(at probe.Progress) string {
	return fmt.Sprintf("%s %d tokens: %d of %d right, %d texts, %s tokens in all", view.Bar(at.Done, at.Most),
		at.Length, at.Right, at.Asked, at.Calls, million(at.Tokens))
}

// million formats a number of tokens.
func million(n int) string {
	if n < 1_000_000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1f million", float64(n)/1e6)
}
