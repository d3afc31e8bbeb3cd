package term

import (
	"context"
	"io"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
)

// asker answers each prompt that is printed, at once and with more lines than asked for.
type asker struct {
	to      *io.PipeWriter
	prompts map[string]string // by the prompt's end
}

func (a *asker) Write(p []byte) (int, error) {
	for end, lines := range a.prompts {
		if strings.HasSuffix(string(p), end) {
			go func() { _, _ = io.WriteString(a.to, lines) }()
		}
	}
	return len(p), nil
}

// TestLines: an answer that comes as soon as the question is shown counts, and lines that
// come with it do not stop what is typed later.
func TestLines(t *testing.T) {
	in, out := io.Pipe()
	said := make(chan string, 10)
	l := NewLines(in, &asker{to: out, prompts: map[string]string{
		"? help: ":            "y\nand use tabs\n/jump 1\nat most four\n",
		"ends the turn): ":    "the third\n",
		"y approve · n not: ": "y\n",
	}})
	l.Steer(func(text string) { said <- text })
	ctx := context.Background()
	if got := l.Approve(ctx, gate.Question{Call: op.Call{Name: "Bash", Args: `{"command":"ls"}`}}); !got.Allow {
		t.Errorf("approved: %+v", got)
	}
	for _, want := range []string{"and use tabs", "at most four"} {
		if got := <-said; got != want {
			t.Errorf("said %q, want %q", got, want)
		}
	}
	if got, ok := l.Ask(ctx, "Which?"); !ok || got != "the third" {
		t.Errorf("answered %q, %v", got, ok)
	}
	if !l.Trust(ctx, "Trust it?") {
		t.Error("not trusted")
	}
}

// TestLinesEdit: a question about an edit shows what changes, one about another call its
// arguments as they were written.
func TestLinesEdit(t *testing.T) {
	l := NewLines(strings.NewReader(""), io.Discard)
	l.Editing("c1", []string{"a.go  +1 -1", "3 - old", "3 + new"})
	for id, want := range map[string]string{"c1": "  a.go  +1 -1\n  3 - old\n  3 + new", "c2": `  edits: ["a && b"]`} {
		if got := l.about(op.Call{ID: id, Name: "X", Args: `{"edits":["a && b"]}`}); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}
