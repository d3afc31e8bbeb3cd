package term

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

func TestClean(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain\ttext\nnext 中文 é", "plain\ttext\nnext 中文 é"},
		{"\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"a\rb", `a\x0db`},
		{"title\x1b]0;pwned\x07", `title\x1b]0;pwned\x07`},
		{"c1\u009b31m", `c1\u009b31m`},
		{"bidi \u202eevil\u2066", `bidi \u202eevil\u2066`},
		{"marks \u061c\u2028end", `marks \u061c\u2028end`},
		{"zero\u200bwidth", `zero\u200bwidth`},
		{"bad \xff byte", `bad \xff byte`},
	}
	for _, tt := range tests {
		if got := Clean(tt.in); got != tt.want {
			t.Errorf("Clean(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// TestOutput: a line that carriage returns overwrite shows its last state.
func TestOutput(t *testing.T) {
	for in, want := range map[string]string{
		"a\r\nb\r\n": "a\nb\n", "1 %\r50 %\rdone\nnext": "done\nnext", "50 %\r": "50 %", "\x1b[2Kx": `\x1b[2Kx`, "plain": "plain",
	} {
		if got := Output(in); got != want {
			t.Errorf("Output(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestOutputs: a command's output is shown with its size if it is long, and why another call failed.
func TestOutputs(t *testing.T) {
	var b strings.Builder
	exit := 1
	p := NewText(nil, &b, 200, "", WithOutputs)
	p.Op(op.Op{Seq: 7,
		Body: &op.ToolReturned{Name: "Bash", Exit: &exit, Text: strings.Repeat("x\n", 20) + "last\n[exit 1]"}})
	p.Op(op.Op{Seq: 8, Body: &op.ToolReturned{Name: "ReadFile", IsError: true, Text: "no such file"}})
	p.Op(op.Op{Seq: 9, Body: &op.ToolReturned{Name: "ReadFile", Text: "a file"}})
	want := `• Bash (exit 1)
  │ x
  │ x
  │ … 14 lines, 44 B in all: anamnesis show 7
  │ x
  │ x
  │ x
  │ x
  │ last
• ReadFile (error)
  │ no such file
• ReadFile
`
	if got := b.String(); got != want {
		t.Errorf("shown as\n%s", got)
	}
}

// TestNarrow: on a narrow terminal a notice is wrapped at words, and a call stays on one line.
func TestNarrow(t *testing.T) {
	var b strings.Builder
	p := NewText(nil, &b, 30, "", NoOutputs)
	p.Op(op.Op{Body: &op.ToolCalled{Name: "Bash", Args: `{"command":"go test ./... -run TestSomething"}`}})
	exit := 1
	p.Op(op.Op{Body: &op.ToolReturned{Name: "Bash", Exit: &exit, Millis: 1200}})
	p.Op(op.Op{Body: &op.JumpDropped{To: 3, Why: "the step was interrupted"}})
	p.Op(op.Op{
		Body: &op.JumpDone{From: 3, To: 1,
			Kept: []op.Skipped{{Path: "notes.md", Reason: "you changed it after the step"}}},
	})
	want := `▸ Bash(go test ./... -run Tes…
• Bash(go tes… (exit 1) (1.2s)
! jump to step 3 not made:
  the step was interrupted
↩ jump from step 3 to step
  1: 0 files changed
  kept "notes.md": you
    changed it after the step
`
	if got := b.String(); got != want {
		t.Errorf("shown as\n%s", got)
	}
}

// TestRetry: the reason of several retries is printed once.
func TestRetry(t *testing.T) {
	var b strings.Builder
	p := NewText(nil, &b, 200, "", NoOutputs)
	for try, text := range []string{1: "busy", 2: "busy", 3: "gone"} {
		if try > 0 {
			p.Retry(model.Attempt{Try: try, Of: 5, Fault: &model.Fault{Err: errors.New(text), Tries: try}})
		}
	}
	if got := b.String(); strings.Count(got, "busy") != 1 ||
		!strings.Contains(got, "(try 3 of 5), for the same reason\n") || !strings.Contains(got, "gone") {
		t.Error(got)
	}
}

// FuzzClean: whatever comes in, nothing a terminal obeys comes out.
func FuzzClean(f *testing.F) {
	f.Add("\x1b[2J\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if !utf8.ValidString(got) || strings.IndexFunc(got, hostile) >= 0 {
			t.Errorf("Clean(%q) = %q", s, got)
		}
		if line := Line(s, 20); strings.ContainsAny(line, "\n\t") {
			t.Errorf("Line(%q) = %q", s, line)
		}
	})
}
