package spelling_test

import (
	"strings"
	"testing"

	"anamnesis/orchestrator/tool/spelling"
)

// TestNearest: a name with a slip is recognised, and what is far from all is not.
func TestNearest(t *testing.T) {
	names := []string{"/jump", "/timeline", "/help", "ReadFile", "jump_to_step"}
	for word, want := range map[string]string{
		"/jmp": "/jump", "/tiemline": "/timeline", "/hlep": "/help", "read_file": "ReadFile", "JumpToStep": "jump_to_step",
		"/xyzzy": "", "": "", strings.Repeat("jump", 17): "",
	} {
		if got := spelling.Nearest(word, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
