//go:build unix

package show

import (
	"fmt"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/blame"
)

const (
	maxBlameLabel = 28 // columns
	maxBlameText  = 300
)

// Blame says what wrote the lines of a file: each of a file's lines with a label, and below a line for each label;
// of a few lines that somebody asked about, all that is known.
func Blame(a *blame.Answer, asked bool) string {
	var b strings.Builder
	tasks := make(map[string]bool)
	for _, o := range a.Origins {
		tasks[o.Task] = o.Kind == blame.Step
	}
	one := strings.Count(fmt.Sprint(tasks), "true") < 2
	labels := make([]string, len(a.Origins))
	wide := 0
	for i, o := range a.Origins {
		labels[i] = blameLabel(o, one)
		wide = max(wide, len([]rune(labels[i])))
	}
	digits := len(fmt.Sprint(a.Lines[len(a.Lines)-1].Number))
	for _, l := range a.Lines {
		fmt.Fprintf(&b, "%*d  %-*s  %s\n", digits, l.Number, wide, labels[l.Origin], view.Clean(strings.TrimSuffix(l.Text, "\r")))
	}
	seen := make(map[string]bool)
	for i, o := range a.Origins {
		if text := fmt.Sprintf("%-*s  %s", wide, labels[i], strings.Join(blameShort(o), " · ")); !asked && !seen[text] {
			if len(seen) == 0 {
				b.WriteByte('\n')
			}
			seen[text] = true
			b.WriteString(text + "\n")
		}
	}
	if !asked {
		fmt.Fprintf(&b, "\nanamnesis blame %s:LINE says more of a line\n", shell.QuoteIfNeeded(view.Clean(a.File)))
		return b.String()
	}
	for _, o := range a.Origins {
		b.WriteString("\n" + blameLong(o, a.Live))
	}
	return b.String()
}

// blameLabel names an origin beside a line.
func blameLabel(o blame.Origin, oneTask bool) string {
	switch {
	case o.Kind == blame.Step && oneTask:
		return fmt.Sprintf("step %d", o.Step)
	case o.Kind == blame.Step:
		return fmt.Sprintf("%s@%d", quote.Clip(o.Task, maxBlameLabel), o.Step)
	case o.Kind == blame.Commit:
		return fmt.Sprintf("git %.8s", o.Commit)
	}
	return map[blame.Kind]string{blame.User: "you", blame.Before: "before", blame.Since: "since", blame.Unknown: "unknown"}[o.Kind]
}

// blameShort says in a line what an origin is.
func blameShort(o blame.Origin) (parts []string) {
	for _, c := range o.Calls {
		if o.Kind != blame.User {
			parts = append(parts, c.String())
		}
	}
	switch {
	case o.Kind == blame.Commit:
		parts = []string{o.Time.Format(time.DateOnly), o.Author, o.Title}
	case o.Kind == blame.Before:
		parts = []string{"before the first task, in no commit"}
	case o.Kind == blame.Since:
		parts = []string{"changed since the last snapshot, of " + o.Time.Local().Format(time.DateTime)}
	case o.Kind == blame.User && len(o.Calls) == 0:
		parts = []string{"changed outside of tasks, " + o.Why}
	case o.Kind == blame.User:
		parts = []string{"changed by you while task " + o.Task + " was in progress"}
	case o.Why != "":
		parts = append(parts, o.Why)
	}
	if o.Request != nil {
		parts = append(parts, `"`+o.Request.Text+`"`)
	}
	if o.Path != "" {
		parts = append(parts, "then "+o.Path)
	}
	for i := range parts {
		parts[i] = view.Clean(quote.OneLine(parts[i], maxBlameText))
	}
	return parts
}

// blameLong says all that is known of an origin, and which commands show more.
func blameLong(o blame.Origin, live string) string {
	var b strings.Builder
	row := func(name, text string) {
		if text = view.Clean(strings.TrimSpace(text)); text != "" {
			fmt.Fprintf(&b, "  %-8s %s\n", name, text)
		}
	}
	when := o.Time.Local().Format(time.DateTime)
	switch o.Kind {
	case blame.Commit:
		fmt.Fprintf(&b, "before the first task: commit %.12s of %s, %s\n", o.Commit, view.Clean(o.Author), when)
		row("title", quote.OneLine(o.Title, maxBlameText))
		row("more", "git show "+o.Commit[:12])
		return b.String()
	case blame.Before:
		b.WriteString("before the first task, in no commit of git\n")
	case blame.Since:
		fmt.Fprintf(&b, "changed since the last snapshot, of %s: by you, or by what no task ran\n", when)
		if live != "" {
			row("", "task "+live+" is running; what its present step writes is saved when the step ends")
		}
	case blame.User:
		fmt.Fprintf(&b, "changed by you: %s\n", strings.Join(blameShort(o), " · "))
	case blame.Unknown:
		fmt.Fprintf(&b, "unknown: %s\n", view.Clean(quote.OneLine(o.Why, maxBlameText)))
	}
	if o.Kind == blame.Step || o.Task != "" && o.Kind == blame.Unknown && o.Request != nil {
		by := ""
		if o.Agent != "" {
			by = ", a session of " + o.Agent
		}
		fmt.Fprintf(&b, "step %d of %s%s, %s\n", o.Step, o.Task, by, when)
	}
	if o.Request != nil {
		row("you", fmt.Sprintf("%q  (op %d)", quote.OneLine(o.Request.Text, maxBlameText), o.Request.Seq))
	}
	row("agent", quote.OneLine(o.Reply, maxBlameText))
	for i, c := range o.Calls {
		if o.Kind == blame.User {
			break
		}
		row([]string{"call", "or"}[min(i, 1)], fmt.Sprintf("%s  (op %d)", c.Text, c.Seq))
	}
	if o.Kind == blame.Step && o.Why != "" {
		row("", o.Why)
	}
	if o.Path != "" {
		row("file", "its name was "+o.Path)
	}
	var more []string
	if o.Task != "" && len(o.Calls) > 0 {
		more = append(more, fmt.Sprintf("anamnesis show %s %d", o.Task, o.Calls[0].Seq))
	}
	if o.Kind == blame.Step && !o.Imported && o.Why == "" {
		more = append(more, fmt.Sprintf("anamnesis diff %s %d %d", o.Task, o.Parent, o.Step))
	}
	row("more", strings.Join(more, "  ·  "))
	if o.Kind == blame.Step && !o.Imported && o.Why == "" {
		row("undo", fmt.Sprintf("anamnesis jump %s %d --dry-run  (to before the step)", o.Task, o.Parent))
	}
	return b.String()
}
