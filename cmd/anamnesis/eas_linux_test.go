package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestEASAtTerminal: the program asks about a probe's cost.
func TestEASAtTerminal(t *testing.T) {
	hangs := make(chan struct{}, 1)
	t.Setenv("OPENAI_BASE_URL", forgetfulServer(t, hangs))
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
	if code, text := p.ends(); code != 0 || !strings.Contains(text, `pattern: "forgetful-2000"`) {
		t.Errorf("yes: exit code %d:\n%s", code, text)
	}

	// Ctrl-C ends a probe; the lengths that were measured are shown.
	p = atTerminal(t, dir, "eas", "probe", "--model", fmt.Sprintf("forgetful-%d", hangingSpan), "--window",
		"64000", "--yes")
	<-hangs // the shortest length is measured
	p.types("\x03")
	if code, text := p.ends(); code != 130 || !strings.Contains(text, "#   1000 tokens ") ||
		!strings.Contains(text, "# stopped: interrupted") || strings.Contains(text, "rows:") {
		t.Errorf("interrupted: exit code %d:\n%s", code, text)
	}
}
