package search_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/orchestrator/tool/search"
)

func TestRequired(t *testing.T) {
	for expr, want := range map[string]string{
		"needle": "needle", `func \(\w+\) Read`: "func (", "(needle)?x": "", "(?:needle)*": "", "ab": "", "abc{0}": "", "(": "", "(?:abc){0,5}": "",
		"a(?:needle){2,3}b": "needle", "^abc$": "abc", `\bword\b`: "word", "[n]eed": "need", "needl+e": "need", "nee.dle": "dle|nee", "[^n]eedle": "eedle",
		"äneedleö": "needle", `one\ntwo2`: "two2", `\x00abc`: "abc", "long.*longest": "longest",
		// One of several.
		"foo|bar": "foo|bar", "bar|baz": "", "class (?:Foo|Bar)": "class ", "https?://": "http", "foo|b": "", "foo|": "",
		"(abc)+|(abd)": "abc|abd", "foo|.*": "", "ba[a-z]foo": "foo", "(?:one|two)+x": "one|two",
		// In another case.
		"(?i)needle": "~NEEDLE", "(?i:need)less": "~NEED", "(?i)k": "", "(?i)aſk": "~ASK",
	} {
		any, anyCase := search.Required(expr)
		got := strings.Join(any, "|")
		if anyCase && got != "" {
			got = "~" + got
		}
		if strings.HasPrefix(want, "dle|nee") {
			want = got // of two that tell as much either will do
		}
		if got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
	if any, _ := search.Required("aaa|bbb|ccc|ddd|eee|fff|ggg|hhh|iii|jjj|kkk|lll|mmm|nnn|ooo|ppp|qqq"); len(any) > 0 {
		t.Errorf("too many texts: %q", any)
	}
}

// pieces are what expressions and the lines they look at are made of: few
// characters, so that they meet, and those that fold into ASCII.
var pieces = []string{"a", "b", "ab", "k", "K", "s", "S", "ſ", "\u212a", "ä", "Ä", " ", "\xff", "\r"}

// expression is a random regular expression over the pieces.
func expression(t *rapid.T, depth int) string {
	piece := rapid.SampledFrom(
		append([]string{".", `\w`, "[ab]", "[^a]", "[k-s]", "^", "$", `\b`, "(?i:ask)", "abk", "sab"}, pieces[:12]...))
	var b strings.Builder
	for range rapid.IntRange(1, 4).Draw(t, "length") {
		part := piece.Draw(t, "piece")
		if depth > 0 && rapid.IntRange(0, 2).Draw(t, "group") == 0 {
			part = "(?:" + expression(t, depth-1) + "|" + expression(t, depth-1) + ")"
		}
		b.WriteString(part)
		if part != "^" && part != "$" && part != `\b` {
			b.WriteString(
				rapid.SampledFrom([]string{"", "", "", "", "?", "*", "+", "{2}", "{0,2}", "+?"}).Draw(t, "times"))
		}
	}
	return b.String()
}

// What matches an expression holds what the expression requires.
func TestMatchesHoldWhatIsRequired(t *testing.T) {
	required, excluded := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var expr string
		var any []string
		for i := 0; len(any) == 0; i++ {
			if i == 20 { // most expressions require nothing
				return
			}
			expr = expression(t, 2)
			if rapid.Bool().Draw(t, "fold") {
				expr = "(?i)" + expr
			}
			any, _ = search.Required(expr)
		}
		required++
		re := regexp.MustCompile(expr)
		for range 100 {
			line := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 12).Draw(t, "line"), "")
			if re.MatchString(line) && !search.MayMatch(expr, line) {
				t.Fatalf("%s requires %q, %q matches without", expr, any, line)
			}
			if !search.MayMatch(expr, line) {
				excluded++
			}
		}
	})
	if required == 0 || excluded == 0 {
		t.Errorf("%d expressions required something, %d lines were excluded", required, excluded)
	}
}
