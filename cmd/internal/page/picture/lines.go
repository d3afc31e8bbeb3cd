package picture

import (
	"fmt"
	"strings"
	"time"

	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// Group holds the operations of one step.
type Group struct {
	Step  int
	Name  string
	What  string // its calls, or else its answer
	Open  bool   // expanded
	Left  bool   // a jump left the step
	Lines []Line
}

type Line struct {
	Seq    uint64
	Step   int
	Kind   string
	Time   string // of the day
	Tokens int
	Text   string
	Faint  bool   // bookkeeping, shown in grey
	Left   bool   // of a step that a jump left
	Output string // the end of a failed command's output
}

func Groups(lines []taskdir.Line, b *timeline.Builder) []Group {
	var out []Group
	dir, left := b.State().Opened.Dir, b.Discarded()
	for _, l := range lines {
		if n := len(out); n == 0 || out[n-1].Step != l.Step {
			g := Group{Step: l.Step, Name: fmt.Sprintf("step %d", l.Step), Left: left(l.Step)}
			if l.Step >= b.Steps() {
				g.Name = fmt.Sprintf("after step %d", l.Step-1)
			}
			out = append(out, g)
		}
		g := &out[len(out)-1]
		line := LineOf(l, dir)
		line.Left = g.Left
		g.Lines = append(g.Lines, line)
	}
	for i := range out {
		out[i].What = whatOf(out[i].Lines)
	}
	return out
}

// whatOf summarises a step: its calls, else its answer, else its first other operation.
func whatOf(lines []Line) string {
	var calls []string
	said, answered := "", false
	for _, l := range lines {
		switch {
		case l.Kind == "tool.called":
			calls = append(calls, l.Text)
		case l.Kind == "model.replied":
			said, answered = l.Text, true
		case !answered && said == "" && !l.Faint && l.Kind != "task.opened":
			said = l.Text
		}
	}
	if len(calls) > 0 {
		said = strings.Join(calls, " · ")
	}
	return term.Line(said, TextColumns)
}

// Limits of a failed command's output as shown.
const (
	FailedLines = 12
	failedBytes = 4 << 10
)

// FailedOutput returns the end of a failed call's output; empty for other operations.
func FailedOutput(o op.Op) string {
	b, ok := o.Body.(*op.ToolReturned)
	if !ok || !b.IsError && (b.Exit == nil || *b.Exit == 0) {
		return ""
	}
	text := strings.TrimRight(b.Text, "\n")
	if len(text) > failedBytes {
		text = strings.ToValidUTF8(text[len(text)-failedBytes:], "")
	}
	lines := strings.Split(term.Output(text), "\n")
	return strings.Join(lines[max(0, len(lines)-FailedLines):], "\n")
}

func LineOf(l taskdir.Line, dir string) Line {
	o := Line{Output: FailedOutput(l.Op), Seq: l.Seq, Step: l.Step, Kind: l.Name,
		Time: l.Time.Local().Format(time.TimeOnly), Tokens: l.Tok}
	text := timeline.LineOf(l.Op, dir).String()
	if l.Err != nil {
		text = "its body cannot be read: " + l.Err.Error()
	}
	o.Text = term.Line(text, TextColumns)
	switch l.Name {
	case "model.asked", "tool.started", "log.sealed", "world.saved":
		o.Faint = true
	}
	return o
}
