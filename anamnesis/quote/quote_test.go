package quote

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestCuts: texts are cut between runes, and what is short stays as it is.
func TestCuts(t *testing.T) {
	text := "開始" + strings.Repeat("中", 1000) + "終了"
	for n := range 20 {
		got := Ends(text, 100+n, "[%d]")
		if !strings.HasPrefix(got, "開始") || !strings.HasSuffix(got, "終了") || !utf8.ValidString(got) ||
			len(got) > 130+n {
			t.Errorf("Ends(%d) = %q", 100+n, got)
		}
		if got := CutBytes(text, n); !utf8.ValidString(got) || len(got) > n || len(got) < n-utf8.UTFMax {
			t.Errorf("CutBytes(%d) = %q", n, got)
		}
	}
	if got := Ends("abcdefgh", 4, "[%d]"); got != "ab[4]gh" {
		t.Errorf("Ends = %q", got)
	}
	for _, pair := range [][2]string{
		{Ends("abcd", 4, "[%d]"), "abcd"}, {CutBytes("abcd", 4), "abcd"}, {CutBytes("", 4), ""},
		{OneLine(" a\n\tb ", 9), "a b"}, {OneLine("a b c d", 3), "a b…"}, {OneLine("äöü", 5), "äö…"},
		{OneLine("abc", 3), "abc"},
		{Clip("abc", 3), "abc"}, {Clip("abcd", 3), "abc"}, {Clip("äöü", 3), "äöü"}, {Clip("äöüx", 3), "äöü"},
		{Clip("ab cd", 3), "ab"}, {Clip("ab", 0), ""},
		{ClipMarked("äöü", 3), "äöü"}, {ClipMarked("abcd", 3), "ab…"}, {ClipMarked("abc d", 4), "abc…"},
		{ClipMarked("ab", 0), "…"}, {ClipMarked("", 0), ""},
		{Word("azAZ09-"), "azAZ09-"}, {Word("`{@[/:_ ,.ä"), "___________"},
		{strings.Join(Quoted("say `a b`, \"c\" or “d” at https://h/x?y, not 'e' nor ``"), "|"), "a b|c|d|https://h/x?y"},
		{Squash(" a\x00b\u200bc \u2028 d\x1b[31m!"), "abc d!"},
		{Squash("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x07 b\x1b(B"), "alink b"},
		{Squash("a\x1b]0;" + strings.Repeat("x", 3) + " b\x1b[1"), "a0;xxx b1"}, // a text hides nothing behind an unended sequence
	} {
		if got, want := pair[0], pair[1]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestHeadTail: a text within its tokens stays; of a longer one two thirds are from its end, and nothing is left of it
// where no cut fits.
func TestHeadTail(t *testing.T) {
	bytes := func(s string) int { return len(s) }
	text := strings.Repeat("a", 20) + strings.Repeat("b", 40)
	for _, row := range []struct {
		text  string
		most  int
		count func(string) int
		want  string
	}{
		{"abc", 3, bytes, "abc"}, {"", 3, bytes, ""}, {"abc", 0, bytes, ""}, {"abc", -1, bytes, ""},
		{text, 5, func(string) int { return 5 }, text[:10] + "\n[… 30 bytes not shown …]\n" + text[40:]},
		{text, 10, func(string) int { return 10 }, text},
		{text, 5, func(string) int { return 6 }, ""},
	} {
		if got := HeadTail(row.text, row.most, row.count); got != row.want {
			t.Errorf("%.10q in %d: %q, want %q", row.text, row.most, got, row.want)
		}
	}
	for most := 40; most < 200; most += 7 {
		got := HeadTail(strings.Repeat("開", 5000)+"end", most, bytes)
		if len(got) > most || len(got) < most/2 || !strings.HasSuffix(got, "end") ||
			!strings.Contains(got, "bytes not shown") || !utf8.ValidString(got) {
			t.Errorf("in %d: %q", most, got)
		}
	}
}

// TestOddBytes: a cut in bytes that are no UTF-8 stays near its place and in the text; nothing is kept of no tokens.
func TestOddBytes(t *testing.T) {
	for _, tt := range []struct {
		text     string
		at, want int
	}{
		{"\x80\x80", 1, 0}, {"\x80\x80", 0, 0}, {"a" + strings.Repeat("\x80", 8), 8, 4}, {"aä", 2, 1}, {"aä", 3, 3},
		{"aä", 9, 3}, {"aä", -1, 0}, {"ab", 1, 1},
	} {
		if got := RuneStart(tt.text, tt.at); got != tt.want {
			t.Errorf("%q from %d: %d, want %d", tt.text, tt.at, got, tt.want)
		}
	}
	for _, n := range []int{-1, 0, 3} {
		if got := HeadTail("", n, func(s string) int { return len(s) }); got != "" {
			t.Errorf("%d tokens of nothing: %q", n, got)
		}
	}
	if got := Squash("ANAMNESIS_BLOCK][ANAMNESIS_BLOCK] [anamnesis_block]"); got != "ANAMNESIS_BLOCK](ANAMNESIS_BLOCK) (anamnesis_block)" {
		t.Errorf("a mark behind half of one: %q", got)
	}
}
