package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// proposals are two rows that the program's own table lacks, beside what it
// knows itself.
const proposals = `version: 1
rows:
  - {pattern: "mine-a", window: 32000, eas: 5000, encoding: o200k_base, confidence: high, source: "a report", updated: 2026-11-20, by: them}
  - {pattern: "mine-b", window: 32000, eas: 6000, encoding: o200k_base, confidence: high, source: "a report", updated: 2026-11-20, by: them}
`

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

	// y writes, n is remembered, anything else is asked again the next time.
	if err := os.WriteFile(filepath.Join(dir, "published.yaml"), []byte(proposals), 0o600); err != nil {
		t.Fatal(err)
	}
	reflect := []string{"eas", "reflect", "--evidence", "published.yaml"}
	p = atTerminal(t, dir, reflect...)
	shown := ""
	for _, answer := range []string{"y", "n", "later"} {
		shown += p.sees(" of 3) write it into your table?")
		p.types(answer)
	}
	_, rest := p.ends()
	shown += rest
	for _, want := range []string{"accepted ", ": forgetful-2000", "rejected ", ": mine-a"} {
		if !strings.Contains(shown, want) {
			t.Errorf("missing %q:\n%s", want, shown)
		}
	}
	p = atTerminal(t, dir, reflect...)
	before := p.sees(" of 1) write it into your table?")
	p.types("later")
	p.ends()
	if !strings.Contains(before, "mine-b: eas 6000") {
		t.Errorf("the proposal that was not decided is not shown again:\n%s", before)
	}
}
