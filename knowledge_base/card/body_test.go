package card

import (
	"strings"
	"testing"
)

// TestTooDeepMarkdown: as many quotes and lists as the limit says may stand in one another.
func TestTooDeepMarkdown(t *testing.T) {
	const most = maxMarkdownDepth
	deep := func(marker string, n int) string { return strings.Repeat(marker, n) }
	for _, tt := range []struct {
		name, text string
		line       int
	}{
		{"nothing", "", 0},
		{"quotes", deep(">", most), 0},
		{"a quote too many", deep(">", most+1), 1},
		{"with blanks", deep("> ", most+1), 1},
		{"lists", deep("- ", most), 0},
		{"a list too many", deep("- ", most+1), 1},
		{"behind tabs", deep("*\t", most+1), 1},
		{"with plus", deep("+ ", most+1), 1},
		{"numbers", deep("1. ", most), 0},
		{"a number too many", deep("1. ", most+1), 1},
		{"with brackets", deep("23) ", most+1), 1},
		{"of each", deep("> - 1. ", most/3+1), 1},
		{"the last without a blank", deep("- ", most) + "-", 0},
		{"a rule", deep("-", 2*most), 0},
		{"points", deep(".", 2*most), 0},
		{"points behind blanks", deep(" .", 2*most), 0},
		{"behind a word", "x" + deep(">", 2*most), 0},
		{"each on its line", deep(">\n", 2*most), 0},
		{"the third line", "a\n\n" + deep(">", most+1) + "\nb", 3},
	} {
		if got := tooDeepMarkdown([]byte(tt.text)); got != tt.line {
			t.Errorf("%s: line %d, want %d", tt.name, got, tt.line)
		}
	}
}
