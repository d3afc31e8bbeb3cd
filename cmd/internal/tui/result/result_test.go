//go:build unix

package result

import (
	"testing"

	"anamnesis/opstream/op"
)

// TestExited: a command is shown as ended by its timeout only if it was, also if its output says so.
func TestExited(t *testing.T) {
	code := 143
	b := &op.ToolReturned{Exit: &code, Millis: 60334, Text: "[timed out after 9s: no]\n[exit 143]"}
	if got := Exited(b); got != "exit 143 · 1m0s" {
		t.Errorf("a command that printed our words: %q", got)
	}
	b.Display = "timed out after 1m0s: the command and everything it had started were ended"
	if got := Exited(b); got != "timed out after 1m0s" {
		t.Errorf("a command that was ended: %q", got)
	}
}

// TestTests: the end of a line is the end of its tests only if they end the line.
func TestTests(t *testing.T) {
	for line, want := range map[string]bool{
		"cd a; CI=1 go test ./... 2>&1":    true,
		"go build && go test ./...":        true,
		"go test ./... 2>&1 | tail -5":     false,
		"go test ./... || true":            false,
		"go test ./...; git status":        false,
		"go test ./... > out\ncat out":     false,
		"go test ./... && echo all passed": true,
	} {
		if runner, last := Tests(line); runner != "go test" || last != want {
			t.Errorf("%q: %q, at its end %v", line, runner, last)
		}
	}
}
