package shell

import (
	"strings"
	"testing"
)

// TestQuoteIfNeeded: a command in a message can be pasted into a shell; plain words stay as they
// are.
func TestQuoteIfNeeded(t *testing.T) {
	for word, want := range map[string]string{
		"/az/AZ/09._-+:@%": "/az/AZ/09._-+:@%", "a b": "'a b'", "$x": "'$x'", "ä": "'ä'", "": "''",
	} {
		if got := QuoteIfNeeded(word); got != want {
			t.Errorf("QuoteIfNeeded(%q) = %s, want %s", word, got, want)
		}
	}
}

// TestGlob: a pattern names the whole text; * is any characters, none among them, and ? is one.
func TestGlob(t *testing.T) {
	for pattern, texts := range map[string]string{ // those that it does not name begin with !
		"": "|!a", "a": "a|!|!b|!ab|!ba", "?": "a|ä|!|!ab", "*": "|a|ab", "a*": "a|ab|!ba|!", "*a": "a|ba|!ab", "a*b": "ab|axb|abab|!a|!aba",
		"a**": "a|ab", "a*b*c": "abc|axbxc|abbcc|!acb|!ab", "*aab": "aaab|aab|!aaba", "a?c*": "abc|abcd|!ac|!ab", "*?": "a|ab|!",
	} {
		for text := range strings.SplitSeq(texts, "|") {
			text, not := strings.CutPrefix(text, "!")
			if Glob(pattern, text) == not {
				t.Errorf("%q names %q: %v", pattern, text, !not)
			}
		}
	}
}
