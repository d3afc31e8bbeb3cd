//go:build unix

package paint

import (
	"slices"
	"strings"
	"testing"

	"anamnesis/orchestrator/tool/file"
)

// TestSettled: only what later text cannot change is printed for good.
func TestSettled(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a paragraph", ""},
		{"one\n\ntwo", "one\n\n"},
		{"one\n\ntwo\n\nthr", "one\n\ntwo\n\n"},
		{"```\ncode\n\nmore\n", ""},
		{"```\ncode\n\n```\n\nafter", "```\ncode\n\n```\n\n"},
		{"1. one\n\n2. two\n\n", ""},
		{"1. one\n\n2. two\n\nafter", "1. one\n\n2. two\n\n"},
		{"- one\n- two\n", ""},
		{"one\n\n- a\n\n  more of a\n", "one\n\n"},
	} {
		if got := c.text[:Settled(c.text)]; got != c.want {
			t.Errorf("Settled(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

// TestMarkdown: what markdown looks like with and without colours.
func TestMarkdown(t *testing.T) {
	for _, c := range []struct{ text, styled, plain string }{
		{"# One *two*", "\x1b[1;34m# One two\x1b[m", "# One *two*"},
		{"a **b** `c`  \nd ~~e~~", "a \x1b[1mb\x1b[m \x1b[36mc\x1b[m\nd \x1b[2me\x1b[m", "a **b** `c`\nd ~~e~~"},
		{"[the page](http://a.b) <http://c.d> [http://e.f](http://e.f)", "the page \x1b[34mhttp://a.b\x1b[m \x1b[34mhttp://c.d\x1b[m\n\x1b[34mhttp://e.f\x1b[m", "the page http://a.b http://c.d\nhttp://e.f"},
		{"- a\n  - b\n- [x] c", "• a\n  • b\n• [x] c", "• a\n  • b\n• [x] c"},
		{"9. a\n\n   more\n10. b", "9. a\n\n   more\n\n10. b", "9. a\n\n   more\n\n10. b"},
		{"- a list item that is longer than a line of forty", "• a list item that is longer than a line\n  of forty", "• a list item that is longer than a line\n  of forty"},
		{"> a\n> b\n\nc", "│ a b\n\nc", "│ a b\n\nc"},
		{"```go\n\tf() // this line is longer than forty columns\n```", "\x1b[36m\tf() // this line is longer than forty columns\x1b[m", "\tf() // this line is longer than forty columns"},
		{"|a|b|\n|-|-:|\n|cc|`d`|", " a  \x1b[2m│\x1b[m b \n\x1b[2m────\x1b[m\x1b[2m┼\x1b[m\x1b[2m───\x1b[m\n cc \x1b[2m│\x1b[m \x1b[36md\x1b[m ", " a  │   b \n────┼─────\n cc │ `d` "},
		{"*a &amp; &#27;[31m \\*b\\* \x1b[2J*", "\x1b[3ma & \\x1b[31m *b* \\x1b[2J\x1b[m", "*a & \\x1b[31m *b* \\x1b[2J*"},
		{"<b>x</b>\n\n<p>\ny", "<b>x</b>\n\n\x1b[36m<p>\x1b[m\n\x1b[36my\x1b[m", "<b>x</b>\n\n<p>\ny"},
	} {
		for theme, want := range map[string]string{"dark": c.styled, "none": c.plain} {
			var md Markdown
			md.Fit(42, theme)
			if got := strings.Join(md.Render(c.text), "\n"); got != want {
				t.Errorf("%s, %q:\n%q, want\n%q", theme, c.text, got, want)
			}
		}
	}
}

// TestShowChange: line numbers of both sides, and a gap where nothing changes.
func TestShowChange(t *testing.T) {
	before := "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"
	after := strings.Replace(strings.Replace(before, "b\n", "B\nB2\n", 1), "i\n", "", 1)
	lines := Change(file.Change{Path: "x\x1b[2J", Before: before, After: after}, 40, 40)
	for i, l := range lines {
		lines[i] = strings.TrimRight(Strip(l), " ")
	}
	want := []string{`x\x1b[2J  +2 -2`, " 1   a", " 2 - b", " 2 + B", " 3 + B2", " 4   c", " 5   d", "   ⋮", " 8   g", " 9   h", " 9 - i", "10   j"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q\nwant\n%q", lines, want)
	}
	cut := Change(file.Change{Path: "x", After: strings.Repeat("line\n", 50), New: true}, 40, 5)
	if last := Strip(cut[len(cut)-1]); len(cut) != 7 || !strings.Contains(last, "45 more lines") {
		t.Errorf("%q", cut)
	}
}
