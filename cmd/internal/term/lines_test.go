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
		"to the agent: ":      "y\nand use tabs\n/jump 1\nat most four\n",
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
