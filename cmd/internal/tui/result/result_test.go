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
