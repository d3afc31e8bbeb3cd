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
		if !strings.HasPrefix(got, "開始") || !strings.HasSuffix(got, "終了") || !utf8.ValidString(got) || len(got) > 130+n {
			t.Errorf("Ends(%d) = %q", 100+n, got)
		}
		if got := CutBytes(text, n); !utf8.ValidString(got) || len(got) > n || len(got) < n-utf8.UTFMax {
			t.Errorf("CutBytes(%d) = %q", n, got)
		}
	}
	if got := Ends("abcdefgh", 4, "[%d]"); got != "ab[4]gh" {
		t.Errorf("Ends = %q", got)
	}
	for got, want := range map[string]string{
		Ends("abcd", 4, "[%d]"): "abcd", CutBytes("abcd", 4): "abcd", CutBytes("", 4): "",
		OneLine(" a\n\tb ", 9): "a b", OneLine("a b c d", 3): "a b…", OneLine("äöü", 5): "äö…",
		Squash(" a\x00b\u200bc \u2028 d\x1b[31m!"):                "abc d!",
		Squash("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x07 b\x1b(B"): "alink b",
		Squash("a\x1b]0;" + strings.Repeat("x", 3) + " b\x1b[1"):  "a0;xxx b1", // a text hides nothing behind an unended sequence
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
