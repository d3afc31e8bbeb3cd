//go:build unix

package show

import (
	"fmt"
	"text/tabwriter"

	"anamnesis/anamnesis/attention"
	"anamnesis/anamnesis/quote"
	"anamnesis/orchestrator/eas"
)

// EASTable lists the rows of a table.
func (o *Printer) EASTable(t *attention.Table) {
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PATTERN\tWINDOW\tEAS\tCONFIDENCE\tSOURCE")
	for _, r := range t.Rows() {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\n", r.Pattern, r.Window, r.EAS, r.Confidence, quote.Squash(r.Source))
	}
	fmt.Fprintf(w, "(any other)\t\t%d\t%s\tdefault\n", attention.UnknownEAS, attention.ConfidenceNone)
	o.wrote(0, w.Flush())
}

// EAS prints what the table says about a model. own is the user's file of rows, counted
// how the model's tokens are counted.
func (o *Printer) EAS(s attention.EAS, own, counted string) {
	if !s.Known && s.Origin == "" {
		o.Printf("%s: unknown model, so %d tokens are assumed; 'anamnesis eas set' adds a row to %s\n", quote.Squash(s.Model), s.EAS, own)
		o.ignored(s)
		return
	}
	o.Printf("%s: attends to %d of %d tokens\n", quote.Squash(s.Model), s.EAS, s.Advertised)
	o.Printf("  row         %s (%s)\n", s.Pattern, s.Origin)
	o.Printf("  source      %s\n", quote.Squash(s.Source))
	o.Printf("  confidence  %s\n", s.Confidence)
	o.Printf("  updated     %s by %s\n", s.Updated, quote.Squash(s.By))
	o.Printf("  counted in  %s\n", counted)
	o.ignored(s)
}

// ignored says which larger EAS a project's rows name.
func (o *Printer) ignored(s attention.EAS) {
	if s.Ignored > 0 {
		o.Printf("  (the project's eas.yaml says %d: not approved, does not count; 'anamnesis config approve' shows it)\n", s.Ignored)
	}
}

// EASChanges says what overlays change. own is the user's file of rows.
func (o *Printer) EASChanges(changes []attention.Change, own string) {
	if len(changes) == 0 {
		o.Printf("no overlay changes anything; yours would be %s\n", own)
	}
	for _, c := range changes {
		o.Printf("%s:%d: %s: eas %s, %s: %s\n", c.Now.Origin, c.Now.Line, c.Now.Pattern, eas.ChangeText(c), c.Now.Confidence, quote.Squash(c.Now.Source))
	}
}

// EASRow says which row was written where, and which row applies if that is another.
func (o *Printer) EASRow(w eas.Written) {
	before := "new"
	if w.Was != nil {
		before = fmt.Sprintf("was %d", w.Was.EAS)
	}
	o.Printf("%s: eas %d (%s), in %s\n", w.Row.Pattern, w.Row.EAS, before, w.File)
	if w.Shadowed {
		o.Printf("note: %s still goes by the row %s of %s: eas %d\n", w.Row.Pattern, w.InEffect.Pattern, w.InEffect.Origin, w.InEffect.EAS)
	}
}
