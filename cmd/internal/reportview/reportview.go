// Package reportview writes the report of a task as text or markdown.
package reportview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/testrun"
	"anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/report"
	"anamnesis/orchestrator/state"
)

// How many lines of each list a short report has: a screen for 300 steps.
const (
	shortPaths = 8
	shortList  = 4
	shortFiles = 6
	width      = 110 // bytes of a line's text
)

// view is a report being written.
type view struct {
	b    strings.Builder
	md   bool
	long bool
}

// Text returns a report for people: in short, or with all lines of each list. md: as markdown.
func Text(r *report.Report, long, md bool) string {
	v := &view{md: md, long: long}
	v.title("Task "+r.Task, fmt.Sprintf("%s, in %s", r.Model, r.Dir))
	v.asked(r)
	v.outcome(r)
	v.questions(r)
	v.lines("Interruptions", r.Breaks, shortList)
	v.goal(r)
	v.tests(r)
	v.paths(r)
	v.files(r)
	v.lines("Learned", r.Learned, shortList)
	v.lines("Outside the directory", r.Outside, shortList)
	v.lines("Open", r.Open, shortList)
	v.counts("Faults of the provider", r.Faults)
	v.counts("Repaired replies", r.Repairs)
	v.figures(r)
	return v.b.String()
}

func (v *view) title(head, rest string) {
	if v.md {
		fmt.Fprintf(&v.b, "# %s\n\n%s\n", head, term.Clean(rest))
		return
	}
	fmt.Fprintf(&v.b, "%s  (%s)\n", head, term.Clean(rest))
}

// head begins a part of the report.
func (v *view) head(name string) {
	if v.md {
		fmt.Fprintf(&v.b, "\n## %s\n\n", name)
		return
	}
	fmt.Fprintf(&v.b, "\n%s\n", name)
}

// item writes a line, and the operation that it rests on.
func (v *view) item(text string, seq uint64) {
	if !v.long {
		if cut := quote.CutBytes(text, width); cut != text {
			text = cut + "…"
		}
	}
	text = term.Clean(text)
	if v.md {
		text = strings.NewReplacer("<", "\\<", "*", "\\*", "_", "\\_", "`", "\\`").Replace(text)
		fmt.Fprintf(&v.b, "- %s", text)
	} else {
		fmt.Fprintf(&v.b, "  %s", text)
	}
	if seq > 0 {
		fmt.Fprintf(&v.b, "  (op %d)", seq)
	}
	v.b.WriteByte('\n')
}

// some returns how many of n lines are written; the rest is counted.
func (v *view) some(n, short int) int {
	if v.long || n <= short+1 {
		return n
	}
	return short
}

func (v *view) rest(n int, what string) {
	if n > 0 {
		v.item(fmt.Sprintf("and %d more %s (--long)", n, what), 0)
	}
}

func (v *view) lines(name string, list []report.Line, short int) {
	if len(list) == 0 {
		return
	}
	v.head(name)
	n := v.some(len(list), short)
	for _, l := range list[:n] {
		v.item(l.Text, l.Op)
	}
	v.rest(len(list)-n, "")
}

// asked writes the user's requests: the first one and the last ones.
func (v *view) asked(r *report.Report) {
	v.head("Asked")
	n := len(r.Asked)
	for i, l := range r.Asked {
		if v.long || i == 0 || i >= n-2 {
			v.item(l.Text, l.Op)
		} else if i == 1 {
			v.rest(n-3, "requests")
		}
	}
}

func (v *view) questions(r *report.Report) {
	if len(r.Questions) == 0 {
		return
	}
	v.head("Questions")
	n := v.some(len(r.Questions), shortList)
	for _, q := range r.Questions[len(r.Questions)-n:] { // the newest
		text := q.Text + ": "
		switch {
		case q.Answer != "":
			text += fmt.Sprintf("%s (%s)", q.Answer, q.By)
		case q.Open:
			text += "open: anamnesis answer " + r.Task
		default:
			text += "no longer asked"
		}
		v.item(text, q.Op)
	}
	v.rest(len(r.Questions)-n, "before")
}

func (v *view) outcome(r *report.Report) {
	v.head("Ended")
	switch {
	case r.Waits != "":
		v.item(r.Waits, 0)
	case r.Ended != nil:
		v.item(r.Ended.Text, r.Ended.Op)
	default:
		v.item("not yet: "+r.State, 0)
	}
	if r.Answer != nil {
		said := strings.Join(strings.Fields(r.Answer.Text), " ")
		if v.long {
			said = r.Answer.Text
		}
		v.item("the agent: "+said, r.Answer.Op)
	}
	if next := Next(r); next != "" {
		v.item(next, 0)
	}
}

// Next returns the command that continues the task; empty if it is done or running.
func Next(r *report.Report) string {
	if r.Ended == nil || r.Waits != "" || strings.HasPrefix(r.Ended.Text, "done") {
		return ""
	}
	return fmt.Sprintf("go on with: anamnesis resume %s", r.Task)
}

// goal writes how the goal's checks went: the first, the best and the last, and how they changed.
func (v *view) goal(r *report.Report) {
	if len(r.Goal) == 0 {
		return
	}
	v.head(fmt.Sprintf("Goal (%d checks)", len(r.Goal)))
	first, last := r.Goal[0], r.Goal[len(r.Goal)-1]
	best := first
	for _, c := range r.Goal {
		if c.Passed && !best.Passed || c.Passed == best.Passed && c.Rating.Better(best.Rating) {
			best = c
		}
	}
	if v.long {
		for _, c := range r.Goal {
			v.check("", c)
		}
		return
	}
	v.check("first: ", first)
	if best != first && best != last {
		v.check("best:  ", best)
	}
	if last != first {
		v.check("last:  ", last)
	}
}

func (v *view) check(label string, c report.Check) {
	text := fmt.Sprintf("%sstep %d: %s", label, c.Step, c.Rating)
	if c.Passed {
		text += ", the check passed"
	}
	v.item(text, c.Op)
}

func (v *view) tests(r *report.Report) {
	first, best, last := r.Best()
	if first == nil {
		return
	}
	v.head(fmt.Sprintf("Tests (%d runs)", len(r.Tests)))
	if v.long {
		for i := range r.Tests {
			v.run("", &r.Tests[i])
		}
		return
	}
	v.run("first: ", first)
	if best != first && best != last {
		v.run("best:  ", best)
	}
	if last != first {
		v.run("last:  ", last)
	}
}

func (v *view) run(label string, t *report.Tests) {
	text := fmt.Sprintf("%sstep %d: %s", label, t.Step, testWords(t))
	v.item(text+": "+t.Command, t.Op)
}

func testWords(t *report.Tests) string {
	switch {
	case t.Status == testrun.RanNone:
		return "no test ran"
	case t.Passed+t.Failed == 0:
		return string(t.Status)
	case t.Failed > 0 && len(t.Names) > 0:
		return fmt.Sprintf("%d passed, %d failed (%s)", t.Passed, t.Failed, strings.Join(t.Names[:min(2, len(t.Names))], ", "))
	}
	return fmt.Sprintf("%d passed, %d failed", t.Passed, t.Failed)
}

func (v *view) paths(r *report.Report) {
	if len(r.Left) == 0 {
		return
	}
	v.head(fmt.Sprintf("Paths that were left (%d)", len(r.Left)))
	n := v.some(len(r.Left), shortPaths)
	for _, p := range r.Left[len(r.Left)-n:] { // the newest
		reason := p.Reason
		if reason == "" {
			reason = "no reason was given"
		}
		text := fmt.Sprintf("steps %d-%d, back to %d: %s", p.To+1, p.From, p.To, reason)
		if v.long && len(p.Tried) > 0 {
			text += "; changed " + strings.Join(p.Tried[:min(5, len(p.Tried))], ", ")
		}
		if v.long && p.Failed != nil {
			text += fmt.Sprintf("; last failure: %s (op %d)", p.Failed.Text, p.Failed.Op)
		}
		v.item(text, p.Op)
	}
	v.rest(len(r.Left)-n, "before")
}

func (v *view) files(r *report.Report) {
	if r.NoFiles != "" {
		v.head("Files")
		v.item("not known: "+r.NoFiles, 0)
		return
	}
	if len(r.Files) == 0 {
		return
	}
	added, removed := 0, 0
	for _, f := range r.Files {
		added, removed = added+f.Added, removed+f.Removed
	}
	v.head(fmt.Sprintf("Files against step 0 (%d, %d lines added, %d removed)", len(r.Files), added, removed))
	files := slices.Clone(r.Files)
	if !v.long { // those with most changes
		slices.SortStableFunc(files, func(a, b report.File) int { return b.Added + b.Removed - a.Added - a.Removed })
	}
	n := v.some(len(files), shortFiles)
	for _, f := range files[:n] {
		v.item(fmt.Sprintf("%-8s +%-4d -%-4d %s", f.Kind, f.Added, f.Removed, f.Path), 0)
	}
	v.rest(len(files)-n, "files")
}

func (v *view) counts(name string, list []report.Count) {
	if len(list) == 0 {
		return
	}
	v.head(name)
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b report.Count) int { return b.N - a.N })
	n := v.some(len(list), shortList)
	for _, c := range list[:n] {
		v.item(fmt.Sprintf("%d times: %s", c.N, c.What), c.Op)
	}
	v.rest(len(list)-n, "")
}

func (v *view) figures(r *report.Report) {
	v.head("Time and cost")
	whole := r.Last.Sub(r.Began)
	other := max(0, whole-r.ModelTime-r.ToolTime-r.WaitingTime)
	text := fmt.Sprintf("%s from %s: model %s, tools %s", round(whole), r.Began.Local().Format("2006-01-02 15:04"), round(r.ModelTime), round(r.ToolTime))
	if r.WaitingTime > 0 {
		text += ", waiting for the provider " + round(r.WaitingTime)
	}
	v.item(fmt.Sprintf("%s, other %s", text, round(other)), 0)
	cost := state.Dollars(r.Usage.USD)
	if r.Usage.USD == 0 {
		cost = "no price is known"
	}
	v.item(fmt.Sprintf("%d steps, %d operations; %d tokens in (%d from the cache), %d out; %s", r.Steps, r.Ops, r.Usage.Prompt, r.Usage.Cached, r.Usage.Completion, cost), 0)
}

func round(d time.Duration) string {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	text := d.Round(time.Second).String()
	if whole, ok := strings.CutSuffix(text, "m0s"); ok {
		return whole + "m"
	}
	return text
}
