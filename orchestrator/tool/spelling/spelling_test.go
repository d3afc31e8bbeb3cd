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
	// Two characters may be changed, added or left out, a third of a long name; a part is a slip however long the rest
	// is.
	long := strings.Repeat("a", 64)
	for _, tt := range []struct {
		word, names, want string
	}{
		{"xbcdey", "abcdef", "abcdef"}, {"xbcxey", "abcdef", ""}, {"xaybcdef", "abcdef", "abcdef"}, {"xyazbcdef", "abcdef", ""}, {"xaybzcdef", "abcdef", ""},
		{"acdf", "abcdef", "abcdef"}, {"adf", "abcdef", ""}, {"bcdefx", "abcdef", "abcdef"}, {"cdefxy", "abcdef", ""},
		{"xbxdexghi", "abcdefghi", "abcdefghi"}, {"xbxdexgxi", "abcdefghi", ""},
		{"abcf", "abcd abce", "abcd"}, {"abce", "abcd abce", "abce"}, {"time", "timeline_of_all", "timeline_of_all"}, {"please_help_me", "help", "help"},
		{"", "a", "a"}, {"-", "abc", ""}, {long, long, long}, {long + "a", long + "a", ""},
	} {
		if got := spelling.Nearest(tt.word, strings.Fields(tt.names)); got != tt.want {
			t.Errorf("Nearest(%q) of %s = %q, want %q", tt.word, tt.names, got, tt.want)
		}
	}
}
