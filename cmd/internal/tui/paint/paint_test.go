//go:build unix

package paint

import (
	"slices"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"

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
		if got := c.text[:StablePrefix(c.text)]; got != c.want {
			t.Errorf("StablePrefix(%q) = %q, want %q", c.text, got, c.want)
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
	want := []string{
		`x\x1b[2J  +2 -2`, " 1   a", " 2 - b", " 2 + B", " 3 + B2", " 4   c", " 5   d", "   ⋮", " 8   g", " 9   h",
		" 9 - i", "10   j",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%q\nwant\n%q", lines, want)
	}
	cut := Change(file.Change{Path: "x", After: strings.Repeat("line\n", 50), New: true}, 40, 5)
	if last := Strip(cut[len(cut)-1]); len(cut) != 7 || !strings.Contains(last, "45 more lines") {
		t.Errorf("%q", cut)
	}
	long := Change(file.Change{Path: "x", After: strings.Repeat("0123456789", 7) + "END\n", New: true}, 30, 10)
	if len(long) != 4 || !strings.HasSuffix(Strip(long[3]), "    234567890123456789END") {
		t.Errorf("a long line is shown as %q", long)
	}
}

// TestMarkdown: every block as it looks, without colours; nothing that the text spells as an
// entity reaches the terminal as a control character.
func TestMarkdown(t *testing.T) {
	var md Markdown
	md.Fit(42, "none")
	for _, c := range []struct{ name, text, want string }{
		{"inline", "# One `x`\n\n*a* **b** ~~c~~ `d`  \n[e](https://x.org/f) https://x.org/g &amp; \\*\n", "One x\n\na b c d\ne (https://x.org/f) https://x.org/g & *"},
		{"lists", "- a first item that is longer than a line\n  - nested\n- [x] done\n\n9. nine\n10. ten\n", "• a first item that is longer than a\n  line\n  • nested\n• [✓] done\n\n9. nine\n10. ten"},
		{"loose", "- a\n\n- b\n", "• a\n\n• b"},
		{"quote and code", "> one\n>\n> two\n\n```go\nif a {\n\treturn\n}\n```\n", "│ one\n│\n│ two\n\nif a {\n    return\n}"},
		{"table", "| a | b |\n|---|--:|\n| 1 | two |\n", " a │   b\n───┼─────\n 1 │ two"},
		{"HTML", "a <b>c</b>\n\n<div>\nx\n</div>\n", "a <b>c</b>\n\n<div>\nx\n</div>"},
		{"control", "&#27;[2J \x1b[2J [a](<x&#27;y>)", `\x1b[2J \x1b[2J a (x&#27;y)`},
	} {
		lines := md.Render(c.text)
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " ")
		}
		if got := strings.Join(lines, "\n"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestCode: each line of a token that goes over lines has its own colour, and colours change
// no letter.
func TestCode(t *testing.T) {
	for _, c := range []struct{ language, code, want string }{
		{"go", "if x := 12 /* a\nb */ {", Blue.Render("if") + " x := " + Purple.Render("12") + " " + Faint.Render("/* a") + "\n" + Faint.Render("b */") + " {"},
		{"SQL", "SELECT 'a' -- b", Blue.Render("SELECT") + " " + Green.Render("'a'") + " " + Faint.Render("-- b")},
		{"sh", `echo "a\"b" # c`, `echo ` + Green.Render(`"a\"b"`) + " " + Faint.Render("# c")},
		{"diff", "-a\n+b", Red.Render("-a") + "\n" + Green.Render("+b")},
		{"brainfuck", "if 12", "if 12"},
	} {
		if got := strings.Join(Code(c.code, c.language), "\n"); got != c.want {
			t.Errorf("%s: %q, want %q", c.language, got, c.want)
		}
	}
}

// TestWrap: a line is never wider than the width, so that nothing cuts off its last letter.
func TestWrap(t *testing.T) {
	for _, text := range []string{"go test ./nested/... -run X", Bold.Render("go test ./nested/...") + " -run X", Bold.Render("go test ./nested/... -run X")} {
		lines := Wrap(text, 20)
		if len(lines) != 2 || Strip(Cut(lines[0], 20)) != "go test ./nested/..." || Strip(lines[1]) != "-run X" {
			t.Errorf("%q: %q", text, lines)
		}
	}
}

// TestTitleNarrow: the end of a path and the numbers of lines stay where the terminal is narrow.
func TestTitleNarrow(t *testing.T) {
	c := file.Change{Path: "internal/deeply/nested/parse.go", After: "a\nb\n", New: true}
	if got := Strip(Title(c, 30)); lipgloss.Width(got) != 30 || !strings.HasSuffix(got, "parse.go (new)  +2 -0") {
		t.Errorf("at 30 columns: %q", got)
	}
	if got := Strip(Title(c, 80)); got != "internal/deeply/nested/parse.go (new)  +2 -0" {
		t.Errorf("at 80 columns: %q", got)
	}
	if got := Strip(strings.Join(Change(c, 20, 9), "")); !strings.HasPrefix(got, "internal/deeply/nested/parse.go") {
		t.Errorf("a change at 20 columns: %q", got)
	}
}
