//go:build unix

package show

import (
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/proposal"
	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/exit"
	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

func (o *Printer) Task(v inspect.Task) {
	say := func(label, format string, args ...any) {
		text := view.Line(fmt.Sprintf(format, args...), max(o.Width-len(label)-1, 20))
		o.Println(strings.TrimRight(label+" "+text, " "))
	}
	say("task     ", "%s · %s", v.ID, v.State)
	if b := v.Begun; b != nil {
		say("subagent ", "%s, begun by op %d of task %s", b.Agent, b.Op, b.Task)
	}
	say("request  ", "%s", v.Request)
	say("directory", "%s", v.Dir)
	if v.Asks != nil {
		say("asks     ", "%s (%s)", timeline.QuestionText(&v.Asks.QuestionAsked),
			exit.InBucket("'anamnesis answer "+v.ID+"'", o.Remote))
	}
	if v.Agent != "" && v.Begun == nil { // of a subagent, its own line says it
		say("agent    ", "%s", v.Agent)
	}
	say("model    ", "%s · %d tokens in, %d out", v.Model, v.Tokens.Prompt, v.Tokens.Completion)
	if v.Tokens.Tokens() > 0 {
		say("cost     ", "%s", Cost(v.Tokens))
	}
	say("record   ", "%s, at step %d; %d operations, %s", quote.Number(v.Steps, "step"), v.Step, v.Ops,
		quote.Number(v.Jumps, "jump"))
	if len(v.Goal) > 0 {
		say("goal     ", "%s", OneLine(strings.Join(v.Goal, ", then ")))
		say("         ", "%s", v.Curve)
	}
	if len(v.Todos) > 0 {
		say("todo list", "%s", op.TodosSummary(v.Todos))
	}
	for _, t := range v.Todos {
		say("         ", "%s", t)
	}
	for _, j := range v.Jobs {
		say("runs     ", "%s (step %d): %s", j.ID, j.Step, j.Command)
	}
	for _, c := range v.Subagents {
		left := ""
		if c.Left {
			left = ", left by a jump"
		}
		say("subagent ", "%s (%s, step %d%s) %s: %s", c.Task, c.Agent, c.Step, left, c.State, c.Description)
	}
	if v.Answer != "" {
		say("answer   ", "%s", v.Answer)
	}
}

// Cost says what tokens cost, as far as it is known. A model of one's own may cost nothing.
func Cost(u op.Usage) string {
	switch {
	case u.Priced == 0 && u.Tokens() > 0:
		return "unknown: neither prices.yaml nor the built-in table has the model"
	case u.Unpriced() > 0:
		return fmt.Sprintf("at least %s: the price of %d tokens is not known", state.Dollars(u.USD), u.Unpriced())
	}
	return state.Dollars(u.USD)
}

func (o *Printer) Explanation(x inspect.Explanation) {
	// say prints a line: the columns whole, and as much of the text as fits.
	say := func(columns, text string) {
		o.Println(strings.TrimRight(columns+view.Line(text, max(o.Width-len(columns), 20)), " "))
	}
	window := "unknown"
	if x.Window > 0 {
		window = fmt.Sprint(x.Window)
	}
	say("", fmt.Sprintf("%s · step %d, op %d · EAS %d · window %s", x.Task, x.Step, x.Op, x.EAS, window))
	say("", fmt.Sprintf("%d tokens in %d messages; above %d, the tools' descriptions included, old results are masked",
		x.Tokens, len(x.Messages), x.Limit))
	for i, todo := range x.Todos {
		if i == 0 {
			say("", "todo list, "+op.TodosSummary(x.Todos))
		}
		say("  ", todo.String())
	}
	say("\n  #  role        tokens      op  step  ", "what")
	for i, m := range x.Messages {
		for k, p := range m.Parts {
			number, role := "", ""
			if k == 0 {
				number, role = fmt.Sprint(i+1), string(m.Role)
			}
			say(fmt.Sprintf("%3s  %-9s  %7d  %6d  %4d  ", number, role, p.Tokens, p.Op, p.Step),
				fmt.Sprintf("%s: %s", p.Kind, p.Text))
			if p.Why != "" {
				say(strings.Repeat(" ", 12)+"- ", p.Why)
			}
		}
	}
	if len(x.Changes) == 0 {
		say("\n", "Nothing was masked, compacted or carried over.")
		return
	}
	say("\n", "What was masked, compacted or carried over:")
	for _, c := range x.Changes {
		say(fmt.Sprintf("%6d  ", c.Op), fmt.Sprintf("%s: %s", c.Kind, c.Rule))
		var out []string
		if len(c.Out) > 0 {
			out = append(out, "out went ops "+rangesText(c.Out))
		}
		if c.Saved > 0 {
			out = append(out, fmt.Sprintf("%d tokens freed", c.Saved))
		}
		if len(out) > 0 {
			say("        ", strings.Join(out, "; "))
		}
	}
}

// maxExplainedRanges is how many ranges of one change are named.
const maxExplainedRanges = 8

func rangesText(rs []op.Range) string {
	var parts []string
	for i, r := range rs {
		if i == maxExplainedRanges {
			parts = append(parts, fmt.Sprintf("and %d more", len(rs)-i))
			break
		}
		parts = append(parts, r.String())
	}
	return strings.Join(parts, ", ")
}

func (o *Printer) StreamReport(r opstream.Report) {
	for _, f := range r.Findings {
		o.Println(f)
	}
	if r.Omitted > 0 {
		o.Printf("and %d more findings\n", r.Omitted)
	}
	seal := "not sealed"
	if r.Sealed {
		seal = "sealed"
	}
	o.Printf("%d records, segments %d, %d bytes, blobs %d, last seq %d hash %s, %s\n",
		r.Records, r.Segments, r.Bytes, r.Blobs, r.LastSeq, r.LastHash, seal)
}

// OneLine is a text without line breaks, and with nothing that acts on a
// terminal.
func OneLine(s string) string { return strings.Join(strings.Fields(view.Clean(s)), " ") }

func (o *Printer) Proposal(p proposal.Proposal) {
	now := fmt.Sprintf("%d by %s of %s", p.Was.EAS, p.Was.Pattern, p.Was.Origin)
	if !p.Was.Known {
		now = fmt.Sprintf("%d, unknown", p.Was.EAS)
	}
	o.Printf("%s  %s: eas %d (now %s), confidence %s, from %s\n", p.ID, quote.Squash(p.Row.Pattern), p.Row.EAS,
		now, p.Row.Confidence, p.Kind)
	for _, e := range p.Evidence {
		o.Printf("    %s\n", quote.Squash(e))
	}
}

// maxDirColumns is how much of a directory's path a list shows, from its end.
const maxDirColumns = 24

// dirColumn is a directory for a column: the beginning of a long path is left out.
func dirColumn(dir string) string {
	if dir == "" {
		return ""
	}
	r := []rune(view.ShortDir(dir))
	if len(r) > maxDirColumns {
		return "…" + string(r[len(r)-maxDirColumns+1:])
	}
	return string(r)
}

// minNameColumns is how wide the column of the tasks' names is at least.
const minNameColumns = 28

// wideColumns is how wide a line must be to hold a task's directory and request, too.
const wideColumns = 100

// Tasks lists tasks, one a line; on a narrow terminal each on two.
func (o *Printer) Tasks(rows []taskdir.Summary) {
	if len(rows) == 0 {
		o.Println(exit.InBucket("no tasks yet: 'anamnesis run \"…\"' starts one", o.Remote))
	}
	priced := slices.ContainsFunc(rows, func(r taskdir.Summary) bool { return r.USD > 0 })
	name, where := minNameColumns, 0 // columns of the names and the directories
	for _, r := range rows {
		name, where = max(name, len(r.ID)), max(where, len([]rune(dirColumn(r.Dir))))
	}
	for _, r := range rows {
		o.task(r, priced, name, where)
		if r.Waits != "" {
			o.Println("    " + view.Line(r.Waits, o.Width-4))
		}
		if r.Asks != nil {
			o.Println("    " + view.Line("asks: "+timeline.QuestionText(&r.Asks.QuestionAsked), o.Width-4))
		}
	}
}

// Question prints what a task asks, and how to answer.
func (o *Printer) Question(task string, q *state.Question) {
	o.Println(view.QuestionBody(&q.QuestionAsked))
	o.Printf("%s %s --op %d %s\n", exit.InBucket("anamnesis answer", o.Remote), task, q.Seq,
		question.Choices(&q.QuestionAsked))
}

func (o *Printer) task(r taskdir.Summary, priced bool, name, where int) {
	cost := ""
	switch {
	case priced && r.USD > 0:
		cost = fmt.Sprintf("%9s  ", state.Dollars(r.USD))
	case priced:
		cost = fmt.Sprintf("%9s  ", "-")
	}
	text := fmt.Sprintf("%-*s %-12s %9s  %s%s", name, r.ID, r.State, quote.Number(r.Steps, "step"), cost,
		r.Changed.Local().Format("2006-01-02 15:04"))
	about := r.Title()
	switch {
	case r.Error != "" && o.Remote != "":
		text = fmt.Sprintf("%-*s %-12s %s", name, r.ID, r.State, r.Error)
	case r.Error != "":
		text = fmt.Sprintf("%-*s %-12s 'anamnesis doctor %s' says more: %s", name, r.ID, r.State, r.ID, r.Error)
	case o.Width < len([]rune(text)):
		o.Println(view.Line(r.ID, o.Width))
		o.Println("  " + view.Line(fmt.Sprintf("%s · %s · %s%s", r.State, quote.Number(r.Steps, "step"),
			strings.TrimLeft(cost, " -"), r.Changed.Local().Format("2006-01-02")), o.Width-2))
		o.Println("  " + view.Line(dirColumn(r.Dir)+"  "+about, o.Width-2))
		return
	case o.Width < wideColumns:
		o.Println(view.Line(text, o.Width))
		o.Println("    " + view.Line(dirColumn(r.Dir)+"  "+about, o.Width-4))
		return
	default:
		text = fmt.Sprintf("%s  %-*s  %s", text, where, dirColumn(r.Dir), about)
	}
	o.Println(view.Line(text, o.Width))
}
