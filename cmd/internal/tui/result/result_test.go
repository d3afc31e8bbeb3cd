//go:build unix

package result

import (
	"testing"

	"anamnesis/opstream/op"
)

// TestExited: only a command that was ended by its timeout is shown so, whatever it printed.
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
