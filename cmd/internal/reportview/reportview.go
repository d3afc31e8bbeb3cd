// Package reportview writes the report of a task for people.
package reportview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/testrun"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/show"
	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/report"
	"anamnesis/orchestrator/state"
)

// A report that is not long fits on a screen: its lists are shortened until it does.
const (
	maxLines     = 40
	maxRows      = 8   // of a list
	labelColumns = 18  // of a section's name
	minColumns   = 40  // of a line's text
	columns      = 120 // of a line, where no width is given
)

// Options say how a report is written. The zero value is a screen of text.
type Options struct {
	Long     bool // all lines of each list, uncut
	Markdown bool
	Columns  int // of a line; 0: 120
	// End: the report follows the turn's own end, which has shown the answer or why there is none.
	End    bool
	Remote string // the bucket that keeps the task; empty: this home does
}

// Item is one line and the operation that it rests on; 0: none.
type Item struct {
	Text string
	Op   uint64
}

type Section struct {
	Name  string
	Items []Item
}

func Text(r *report.Report, o Options) string {
	sections := Sections(r, o)
	if o.Markdown {
		return markdown(r, sections)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Task %s  (%s, in %s)\n", r.Task, term.ModelName(r.Model), term.Clean(r.Dir))
	for _, s := range sections {
		for i, item := range s.Items {
			label := ""
			if i == 0 {
				label = s.Name
			}
			line := fmt.Sprintf("%-*s%s", labelColumns, label, o.cut(item))
			if !o.Long {
				line = strings.ReplaceAll(line, "\n", " ")
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return b.String()
}

// cut returns an item's text, shortened to a line, and its operation.
func (o Options) cut(item Item) string {
	end := ""
	if item.Op > 0 {
		end = fmt.Sprintf("  (op %d)", item.Op)
	}
	if o.Long {
		return term.Clean(item.Text) + end
	}
	return term.Line(item.Text, max(cmp.Or(o.Columns, columns)-labelColumns-len(end), minColumns)) + end
}

func markdown(r *report.Report, sections []Section) string {
	escape := strings.NewReplacer("<", "\\<", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[")
	var b strings.Builder
	fmt.Fprintf(&b, "# Task %s\n\n%s, in %s\n", escape.Replace(r.Task), escape.Replace(term.ModelName(r.Model)),
		escape.Replace(term.Clean(r.Dir)))
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n", s.Name)
		for _, item := range s.Items {
			fmt.Fprintf(&b, "- %s\n", escape.Replace(Options{Long: true}.cut(item)))
		}
	}
	return b.String()
}

// Sections returns the parts of a report that say something.
func Sections(r *report.Report, o Options) []Section {
	for rows := maxRows; ; rows-- {
		v := &view{Options: o, rows: rows}
		v.report(r)
		n := 1
		for _, s := range v.sections {
			n += len(s.Items)
		}
		if o.Long || n <= maxLines || rows == 1 {
			return v.sections
		}
	}
}

type view struct {
	Options
	rows     int // of a list that is not shown whole
	sections []Section
}

func (v *view) report(r *report.Report) {
	v.asked(r)
	if !v.End || r.Ended != nil && strings.HasPrefix(r.Ended.Text, "done") {
		v.outcome(r)
	}
	v.questions(r)
	v.list("Interruptions", "more", len(r.Breaks), func(i int) Item {
		return Item{r.Breaks[i].Text + " at " + state.Clock(r.Breaks[i].Time, time.Now()), r.Breaks[i].Op}
	})
	v.goal(r)
	v.tests(r)
	v.paths(r)
	v.files(r)
	v.lines("Git", r.Git)
	v.lines("Learned", r.Learned)
	v.lines("Outside dir", r.Outside)
	v.lines("Still to do", r.Open)
	v.lines("Subagents", r.Subagents)
	v.counts("Refused calls", r.Refused)
	v.counts("Provider", r.Faults)
	v.counts("Repaired", r.Repairs)
	v.figures(r)
}

// add adds items to a section, which begins with the first.
func (v *view) add(name string, items ...Item) {
	if n := len(v.sections); n == 0 || v.sections[n-1].Name != name {
		v.sections = append(v.sections, Section{Name: name})
	}
	s := &v.sections[len(v.sections)-1]
	s.Items = append(s.Items, items...)
}

// list adds as many of n items as there is room for, and says how many there are.
func (v *view) list(name, noun string, n int, item func(i int) Item) {
	shown := n
	if !v.Long && n > v.rows+1 {
		shown = v.rows
	}
	if n > 1 {
		name = fmt.Sprintf("%s (%d)", name, n)
	}
	for i := range shown {
		v.add(name, item(i))
	}
	if shown < n {
		v.add(name, Item{Text: fmt.Sprintf("and %d %s (--long)", n-shown, noun)})
	}
}

func (v *view) lines(name string, list []report.Line) {
	v.list(name, "more", len(list), func(i int) Item { return Item{list[i].Text, list[i].Op} })
}

// asked adds the user's words: the first and the last.
func (v *view) asked(r *report.Report) {
	n := len(r.Asked)
	for i, l := range r.Asked {
		if v.Long || i == 0 || i >= n-2 {
			v.add("Asked", Item{l.Text, l.Op})
		} else if i == 1 {
			v.add("Asked", Item{Text: fmt.Sprintf("and %d between (--long)", n-3)})
		}
	}
}

// questions adds the open question, with the command that answers it, and those before.
func (v *view) questions(r *report.Report) {
	if q := r.Asks(); q != nil && !v.End {
		answer := exit.InBucket("anamnesis answer", v.Remote) + " " + r.Task + " " + question.Choices(&q.Asked)
		v.add("Asks", Item{q.Text, q.Op}, Item{Text: answer})
	}
	closed := slices.DeleteFunc(slices.Clone(r.Questions), func(q report.Question) bool { return q.Open })
	v.list("Questions", "before", len(closed), func(i int) Item {
		q := closed[len(closed)-1-i] // the newest first
		if q.Answer == "" {
			return Item{"no longer asked: " + q.Text, q.Op}
		}
		return Item{fmt.Sprintf("“%s” (%s) to: %s", q.Answer, q.By, q.Text), q.Op} // a long question is cut
	})
}

func (v *view) outcome(r *report.Report) {
	now := state.Clock(r.Last, time.Now())
	switch {
	case r.Asks() != nil:
		v.add("State", Item{Text: r.State + ", waits for your answer"})
	case r.Waits != "" && r.State == "running":
		v.add("State", Item{r.Waits, r.WaitsOp})
	case r.Doing != nil:
		v.add("State", Item{fmt.Sprintf("%s at %s: %s", r.State, now, r.Doing.Text), r.Doing.Op})
	case r.Ended == nil && r.State == "running":
		v.add("State", Item{fmt.Sprintf("running at %s: the model is asked", now), r.Ops})
	case r.Ended == nil:
		v.add("Ended", Item{fmt.Sprintf("%s: the last operation is of %s", r.State, now), r.Ops})
	default:
		text := r.Ended.Text
		if !r.Imported {
			text += ", at " + state.Clock(r.Ended.Time, time.Now())
		}
		v.add("Ended", Item{text, r.Ended.Op})
	}
	if v.End {
		return
	}
	name := v.sections[len(v.sections)-1].Name
	if r.Answer != nil {
		said := strings.Join(strings.Fields(r.Answer.Text), " ")
		if v.Long {
			said = strings.TrimSpace(r.Answer.Text)
		}
		v.add(name, Item{"the agent: " + said, r.Answer.Op})
	}
	if next := Next(r); next != "" {
		v.add(name, Item{Text: "go on with: " + exit.InBucket(next, v.Remote)})
	}
}

// Next returns the command that continues the task; empty if it runs, or another agent's does.
func Next(r *report.Report) string {
	next := "anamnesis resume " + r.Task
	switch {
	case r.State == "running" || r.State == "open" || r.Agent != "":
		return ""
	case r.Ended == nil || r.Asks() != nil:
		return next
	case r.Limit != "":
		return fmt.Sprintf("%s --%s N", next, r.Limit)
	case strings.HasPrefix(r.Ended.Text, "done") || strings.HasPrefix(r.Ended.Text, "stuck"):
		return next + ` "…"`
	}
	return next
}

// goal adds how the goal's checks went: the first, the best and the last, and what broke one.
func (v *view) goal(r *report.Report) {
	if r.Until == "" && len(r.Goal) == 0 {
		return
	}
	name := fmt.Sprintf("Goal (%d)", len(r.Goal))
	first, last := 0, len(r.Goal)-1
	v.add(name, Item{Text: cmp.Or(r.Until, "left to the agent")})
	for i, c := range r.Goal {
		label := ""
		switch {
		case i == first:
			label = "first: "
		case i == last && c.Op == r.Best && !c.Passed:
			label = "last and best: "
		case i == last:
			label = "last: "
		case c.Op == r.Best:
			label = "best: "
		case !v.Long:
			continue
		}
		text := fmt.Sprintf("%sstep %d: %s", label, c.Step, c.Rating)
		if c.Passed {
			text += ", the check passed"
		} else if c.Fails != "" {
			text += ", fails: " + c.Fails
		}
		v.add(name, Item{text, c.Op})
	}
	for _, c := range slices.Backward(r.Goal) {
		if b := c.Broke; b != nil {
			v.add(name, Item{"it " + b.String(), c.Op})
			return
		}
	}
}

func (v *view) tests(r *report.Report) {
	first, best, last := r.BestTests()
	for i := range r.Tests {
		t := &r.Tests[i]
		label := ""
		switch t {
		case first:
			label = "first: "
		case last:
			if label = "now: "; t.Stale {
				label = "last: "
			}
		case best:
			label = "best: "
		}
		// The best run is shown apart only if it was better than the last.
		if label == "" && !v.Long || t == best && last != nil && t != last && t != first && best.Passed <= last.Passed {
			continue
		}
		where := ""
		switch {
		case t.Left:
			where = ", on a path that was left"
		case t.Stale && t == last:
			where = ", files changed since"
		}
		// The command is last, since the end may be cut.
		text := fmt.Sprintf("%sstep %d%s: %s: %s", label, t.Step, where, v.testWords(t), t.Command)
		v.add(fmt.Sprintf("Tests (%d)", len(r.Tests)), Item{text, t.Op})
	}
}

func (v *view) testWords(t *report.Tests) string {
	switch {
	case t.Status == testrun.RanNone:
		return "no test ran"
	case t.Passed+t.Failed == 0:
		return string(t.Status)
	case t.Failed > 0 && len(t.Names) > 0:
		names := t.Names
		if !v.Long {
			names = names[:min(2, len(names))]
		}
		text := fmt.Sprintf("%d passed, %d failed (%s", t.Passed, t.Failed, strings.Join(names, ", "))
		if more := t.Failed - len(names); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return text + ")"
	}
	return fmt.Sprintf("%d passed, %d failed", t.Passed, t.Failed)
}

// paths adds the paths that were left, the newest first.
func (v *view) paths(r *report.Report) {
	v.list("Paths left", "before", len(r.Left), func(i int) Item {
		p := r.Left[len(r.Left)-1-i]
		steps := fmt.Sprintf("steps %d-%d", p.First, p.From)
		switch p.From {
		case p.To:
			steps = "an unfinished step"
		case p.First:
			steps = fmt.Sprintf("step %d", p.From)
		}
		why := strings.Trim(p.Learned+" – "+p.Reason, " –")
		by := ""
		if p.By != op.ByAgent && p.By != "" {
			by = " by " + timeline.ActorName(p.By)
		}
		text := fmt.Sprintf("%s, back to %d%s: %s", steps, p.To, by, cmp.Or(why, "no reason was given"))
		if v.Long && len(p.Tried) > 0 {
			text += "; changed " + strings.Join(p.Tried[:min(5, len(p.Tried))], ", ")
		}
		if v.Long && p.Failed != nil {
			text += fmt.Sprintf("; last failure: %s (op %d)", p.Failed.Text, p.Failed.Op)
		}
		return Item{text, p.Op}
	})
}

func (v *view) files(r *report.Report) {
	switch {
	case r.NoFiles != "":
		v.add("Files", Item{Text: "not known: " + r.NoFiles})
		return
	case len(r.Files) == 0:
		v.add("Files", Item{"none differs from the beginning", r.FilesOp})
		return
	}
	added, removed := 0, 0
	for _, f := range r.Files {
		added, removed = added+f.Added, removed+f.Removed
	}
	files := slices.Clone(r.Files)
	if !v.Long { // those with most changes
		slices.SortStableFunc(files, func(a, b report.File) int { return b.Added + b.Removed - a.Added - a.Removed })
	}
	if len(files) > 1 {
		text := fmt.Sprintf("%s added, %d removed since the beginning", quote.Number(added, "line"), removed)
		v.add(fmt.Sprintf("Files (%d)", len(files)), Item{text, r.FilesOp})
	}
	v.list("Files", "more", len(files), func(i int) Item {
		f := files[i]
		text := fmt.Sprintf("%-8s +%-4d -%-4d %s", f.Kind, f.Added, f.Removed, f.Path)
		if f.Yours {
			text += " (by you)"
		}
		return Item{text, f.Op}
	})
}

func (v *view) counts(name string, list []report.Count) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b report.Count) int { return b.N - a.N })
	v.list(name, "more", len(list), func(i int) Item {
		c := list[i]
		if c.N == 1 {
			return Item{c.What, c.Op}
		}
		return Item{fmt.Sprintf("%d times: %s", c.N, c.What), c.Op}
	})
}

func (v *view) figures(r *report.Report) {
	v.time(r)
	v.add("Cost", Item{fmt.Sprintf("%s; %d tokens in (%d from the cache), %d out; %s, %d operations",
		show.Cost(r.Usage), r.Usage.Prompt, r.Usage.Cached, r.Usage.Completion, quote.Number(r.Steps, "step"), r.Ops),
		r.Ops})
}

func (v *view) time(r *report.Report) {
	if r.Imported {
		return
	}
	whole := r.Last.Sub(r.Began)
	other := max(0, whole-r.ModelTime-r.ToolTime-r.CheckTime-r.WaitingTime-r.AskingTime-r.IdleTime)
	v.add("Time", Item{fmt.Sprintf("%s, from %s to %s: model %s, tools %s, other %s", round(whole),
		r.Began.Local().Format("2006-01-02 15:04"), r.Last.Local().Format("15:04"), round(r.ModelTime),
		round(r.ToolTime), round(other)), r.Ops})
	var parts []string
	for _, part := range []struct {
		what string
		time time.Duration
	}{
		{"checks", r.CheckTime}, {"waiting for the provider", r.WaitingTime}, {"waiting for you", r.AskingTime},
		{"not running", r.IdleTime},
	} {
		if part.time >= time.Second {
			parts = append(parts, part.what+" "+round(part.time))
		}
	}
	if len(parts) > 0 {
		v.add("Time", Item{Text: strings.Join(parts, ", ")})
	}
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
