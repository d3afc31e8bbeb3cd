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
