package file

import (
	"strings"
	"testing"
)

// oldLines are the old lines of a hunk.
func oldLines(text string) (out []patchLine) {
	for line := range strings.SplitSeq(text, "|") {
		out = append(out, patchLine{op: ' ', text: line})
	}
	return out
}

// TestMatches: old lines match with the file's own line ends.
func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		text, old string
		at        int
		want      bool
	}{
		{"a\nb\n", "a", 0, true},
		{"a\nb\n", "a|b", 0, true},
		{"a\nb\n", "b", 0, false},
		{"a\nb\n", "b", 1, true},
		{"a\r\nb\r\n", "a|b", 0, true},
		{"a\r\r\n", "a", 0, false},
		{"a\nb", "b", 1, true},
	} {
		if got := readDocument(tt.text).matches(oldLines(tt.old), tt.at); got != tt.want {
			t.Errorf("%q at %d of %q: %v", tt.old, tt.at, tt.text, got)
		}
	}
}

// TestAbsent: what is said of old lines that do not occur names the best place and the line that differs.
func TestAbsent(t *testing.T) {
	for _, tt := range []struct {
		text, old string
		from      int
		want      string // all of these, separated by |
	}{
		{"a\nb\n", "x|b", 0, `first line "x" does not occur`},
		{"", "x", 0, `first line "x" does not occur`},
		{"a\nb\nc\n", "a|x", 0, `at line 2|has "b"|expects "x"`},
		{"a\nb\na\nb\nc\n", "a|b|c|x", 0, `at line 6|has the file's end|expects "x"`},
		{"a\nb\na\nb\n", "a|b|x", 0, `at line 3|has "a"|expects "x"`},
		{"a\nb\nc\n", "a|b", 2, `occur at line 1 only|before line 3`},
	} {
		err := readDocument(tt.text).absent(oldLines(tt.old), tt.from)
		for part := range strings.SplitSeq(tt.want, "|") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q in %q: %v; want %q in it", tt.old, tt.text, err, part)
			}
		}
	}
}
