package timeline

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

// maxTranscriptLines is how much of a call's result a transcript holds, from its end.
const maxTranscriptLines = 40

// Transcript writes a task's conversation as markdown, in the recorded order, including what
// jumps left.
type Transcript struct {
	out   *bufio.Writer
	dir   string
	calls map[string]op.Call
}

// NewTranscript returns a transcript on w. Close writes what is left.
func NewTranscript(w io.Writer) *Transcript {
	return &Transcript{out: bufio.NewWriter(w), calls: make(map[string]op.Call)}
}

// Close flushes the transcript and returns the first error of writing it.
func (t *Transcript) Close() error { return t.out.Flush() }

func (t *Transcript) Add(o op.Op) error {
	if b, ok := o.Body.(*op.CardsRecalled); ok && len(b.Cards) == 0 {
		return nil
	}
	switch b := o.Body.(type) {
	case *op.TaskOpened:
		t.dir = b.Dir
		fmt.Fprintf(t.out, "# Task %s\n\n%s · %s · EAS %d · %s\n", b.Task, b.Dir, b.Model, b.EAS,
			o.Time.Local().Format("2006-01-02 15:04"))
	case *op.UserSaid:
		fmt.Fprintf(t.out, "\n## User\n\n%s\n", b.Text)
	case *op.ModelReplied:
		if b.Text != "" {
			fmt.Fprintf(t.out, "\n## Agent, step %d\n\n%s\n", o.Step, strings.TrimSpace(b.Text))
		}
		for _, c := range b.Calls {
			t.calls[c.ID] = c
		}
	case *op.ApprovalDecided:
		applyEdit(t.calls, b)
	case *op.ToolReturned:
		t.result(b)
	case *op.JumpDone, *op.PassDone, *op.CardsRecalled, *op.RepairsFound:
		fmt.Fprintf(t.out, "\n> %s\n", strings.ReplaceAll(LineOf(o, t.dir).String(), "\n", "\n> "))
		if p, ok := b.(*op.PassDone); ok && p.Block != "" {
			t.fenced(p.Block, 0)
		}
	}
	return nil
}

// result writes a call and the end of what it returned.
func (t *Transcript) result(b *op.ToolReturned) {
	c, ok := t.calls[b.Call]
	if !ok {
		c = op.Call{ID: b.Call, Name: b.Name}
	}
	delete(t.calls, b.Call)
	how := CallEnd(b)
	if how == "" && b.Exit != nil {
		how = " (exit 0)"
	}
	fmt.Fprintf(t.out, "\n- `%s`%s\n", strings.ReplaceAll(tool.Display(c, t.dir), "`", "'"), how)
	if b.Exit != nil || b.IsError {
		t.fenced(b.Text, b.Cut)
	}
}

// fenced writes a text as a block of code, or its end where it is long. cut is how many bytes the
// text lacks already: the lines among them are not known.
func (t *Transcript) fenced(text string, cut int64) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if more := len(lines) - maxTranscriptLines; more > 1 {
		what := quote.Number(more, "line")
		if cut > 0 {
			what = quote.Number(len(text)+int(cut), "byte") + " in all"
		}
		lines = append([]string{"… " + what}, lines[more:]...)
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(t.out, "\n%s\n%s\n%s\n", fence, strings.Join(lines, "\n"), fence)
}
