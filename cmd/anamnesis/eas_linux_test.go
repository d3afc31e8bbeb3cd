package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestEASAtTerminal: the program asks about a probe's cost, and about each
// proposal.
func TestEASAtTerminal(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", forgetfulServer(t))
	t.Setenv("OPENAI_API_KEY", "test")
	dir := t.TempDir()
	probe := []string{"eas", "probe", "--model", "forgetful-2000", "--window", "64000", "--longest", "8000"}

	p := atTerminal(t, dir, probe...)
	p.sees("Continue? (y/n) ")
	p.types("n")
	if code, text := p.ends(); code != 3 || !strings.Contains(text, "not agreed to; nothing was asked") {
		t.Errorf("no: exit code %d:\n%s", code, text)
	}

	p = atTerminal(t, dir, probe...)
	p.sees("Continue? (y/n) ")
	p.types("y")
	p.sees("1000 tokens: ")
	p.sees(" of 48 right, ")
	if code, text := p.ends(); code != 0 || !strings.Contains(text, `pattern: "forgetful-2000"`) {
		t.Errorf("yes: exit code %d:\n%s", code, text)
	}

	// Ctrl-C ends a probe; the lengths that were measured are shown.
	p = atTerminal(t, dir, "eas", "probe", "--model", fmt.Sprintf("forgetful-%d", hangingSpan), "--window", "64000", "--yes")
	p.sees("1000 tokens: 48 of 48 right, 12 texts")
	p.types("\x03")
	if code, text := p.ends(); code != 130 || !strings.Contains(text, "#   1000 tokens ") || !strings.Contains(text, "# stopped: interrupted") || strings.Contains(text, "rows:") {
		t.Errorf("interrupted: exit code %d:\n%s", code, text)
	}

	// What is not decided is asked again the next time; y writes it.
	p = atTerminal(t, dir, "eas", "reflect")
	p.sees(" of 1) write it into your table?")
	p.types("later")
	p.ends()
	p = atTerminal(t, dir, "eas", "reflect")
	shown := p.sees(" of 1) write it into your table?")
	p.types("y")
	_, rest := p.ends()
	if shown += rest; !strings.Contains(shown, "forgetful-2000: eas") || !strings.Contains(shown, "accepted ") {
		t.Errorf("the proposal that was not decided, and the decision:\n%s", shown)
	}
}
