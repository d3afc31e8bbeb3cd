package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/cmd/internal/exit"
)

// TestAgentAsked: at a terminal a user sees what a project brings for an agent
// before it is used; a no is a refusal, and a yes holds until it changes.
func TestAgentAsked(t *testing.T) {
	dir := layAsked(t, "turns:\n  - expect: [{on: system, contains: \"You fix things.\"}]\n    reply: I fixed it.\n")
	specs := filepath.Join(dir, "w", ".anamnesis", "agents")
	if err := os.MkdirAll(specs, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"fixer.yaml": "extends: default\nsystem_prompt: fixer.md\n", "fixer.md": "You fix things.\x1b[2J\n"} {
		if err := os.WriteFile(filepath.Join(specs, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		answer string // empty: nothing is asked
		code   int
		says   string
	}{
		{"n", exit.Refused, "its current content is not approved"}, {"y", exit.Done, "I fixed it."},
		{"", exit.Done, "I fixed it."},
	} {
		p := atTerminal(t, dir, "run", "--dir", "w", "--model", "script:words.yaml", "--agent", "fixer", "Go.")
		if row.answer != "" {
			shown := p.sees("Use it?")
			if !strings.Contains(shown, "system_prompt: fixer.md") || !strings.Contains(shown, "You fix things.") ||
				strings.Contains(shown, "\x1b[2J") {
				t.Errorf("asked about:\n%s", shown)
			}
			p.sees("y approve · n not: ")
			p.types(row.answer)
		}
		if code, rest := p.ends(); code != row.code || !strings.Contains(rest, row.says) {
			t.Errorf("%q: exit %d, want %d with %q:\n%s", row.answer, code, row.code, row.says, rest)
		}
	}
}
