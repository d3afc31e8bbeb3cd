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
	maxBlameTask = 28 // columns of a task's name in a label
	maxBlameText = 300
)

// Blame says what wrote the lines of a file: each line with a label, and what is known of each label: in one line
// for a file, in full for lines that were asked about.
func Blame(a *blame.Answer) string {
	labels, wide := make([]string, len(a.Origins)), 0
	for i, o := range a.Origins {
		labels[i] = blameLabel(o)
		wide = max(wide, len([]rune(labels[i])))
	}
	var b strings.Builder
	for _, l := range a.Lines {
		fmt.Fprintf(&b, "%*d  %-*s  %s\n", len(fmt.Sprint(a.Lines[len(a.Lines)-1].Number)), l.Number, wide,
			labels[l.Origin], view.Clean(strings.TrimSuffix(l.Text, "\r")))
	}
	b.WriteByte('\n')
	if a.Asked {
		for i, o := range a.Origins {
			head, rows := BlameOrigin(o)
			fmt.Fprintf(&b, "%s%s\n", strings.Repeat("\n", min(i, 1)), head)
			for _, r := range rows {
				fmt.Fprintf(&b, "  %-8s %s\n", r[0], r[1])
			}
		}
		return b.String()
	}
	seen := make(map[string]bool)
	for i, o := range a.Origins {
		head, rows := BlameOrigin(o)
		if o.Kind == blame.Step {
			head = "" // as the label
		}
		for _, r := range rows {
			if r[0] == "call" || r[0] == "or" || r[0] == "you" || r[0] == "title" {
				head = strings.TrimPrefix(head+" · "+r[1], " · ")
			}
		}
		if text := fmt.Sprintf("%-*s  %s\n", wide, labels[i], head); !seen[text] {
			seen[text] = true
			b.WriteString(text)
		}
	}
	fmt.Fprintf(&b, "\nanamnesis blame %s:LINE says more of a line\n", shell.QuoteIfNeeded(view.Clean(a.File)))
	return b.String()
}

// blameLabel names an origin beside a line.
func blameLabel(o blame.Origin) string {
	switch o.Kind {
	case blame.Step:
		return fmt.Sprintf("%s@%d", quote.Clip(o.Task, maxBlameTask), o.Step)
	case blame.Commit:
		return fmt.Sprintf("git %.8s", o.Commit)
	case blame.User:
		return "you"
	}
	return string(o.Kind)
}

// BlameOrigin describes an origin. Each row has a name and says what is known of it, or which command shows more.
func BlameOrigin(o blame.Origin) (head string, rows [][2]string) {
	row := func(name, format string, args ...any) {
		rows = append(rows, [2]string{name, view.Clean(fmt.Sprintf(format, args...))})
	}
	line := func(text string) string { return quote.OneLine(text, maxBlameText) }
	when := o.Time.Local().Format(time.DateTime)
	switch o.Kind {
	case blame.Commit:
		row("title", "%s", line(o.Title))
		row("more", "git show %.12s", o.Commit)
		return view.Clean(fmt.Sprintf("no task wrote it: commit %.12s of %s, %s", o.Commit, o.Author, when)), rows
	case blame.Before:
		return "no task wrote it, and it is in no commit of git", nil
	case blame.Since:
		return "changed since the last snapshot, of " + when +
			": by you, by what no task ran, or by the step of a running task, which is saved when it ends", nil
	case blame.User:
		head = strings.TrimSuffix("changed by you, "+line(o.Why), ", ")
	case blame.Unknown:
		head = "not known: " + line(o.Why)
	}
	if o.Request != nil {
		step := fmt.Sprintf("step %d of %s, %s", o.Step, o.Task, when)
		if o.Agent != "" {
			step += ", a session of " + o.Agent
		}
		if head == "" {
			head = step
		} else {
			row("perhaps", "%s", step)
		}
		row("you", "%q (op %d)", line(o.Request.Text), o.Request.Seq)
	}
	if o.Reply != "" {
		row("agent", "%q", line(o.Reply))
	}
	for i, c := range o.Calls {
		// The calls of a step explain nothing that the user changed.
		if o.Kind == blame.User {
			break
		}
		row([]string{"call", "or"}[min(i, 1)], "%s", line(c.String()))
	}
	if o.Path != "" {
		row("file", "its name was %s", o.Path)
	}
	if len(o.Calls) > 0 {
		row("more", "anamnesis show %s %d", o.Task, o.Calls[0].Seq)
	}
	if o.Kind == blame.Step && !o.ReadOnly {
		row("", "anamnesis diff %s %d %d", o.Task, o.Parent, o.Step)
		row("undo", "anamnesis jump %s %d --dry-run (to before the step)", o.Task, o.Parent)
	}
	return view.Clean(head), rows
}
