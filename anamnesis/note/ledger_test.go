package note

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"anamnesis/anamnesis/quote"
)

// TestLedger: a block ends with the paths that were left, each in at most 30 tokens, and ParseList reads them back.
// Where they are too many, those alike become one that counts them, and is counted on in the next block.
func TestLedger(t *testing.T) {
	render := func(lines []string, most int) (got []string, text string) {
		ledger := ParseLedger("\n" + LedgerTitle + ":\n- " + strings.Join(lines, "\n- ") + "\n")
		text, _ = new(Notes).Block(&Span{Task: "t", From: 9, To: 1, Ledger: ledger, LedgerTokens: most},
			nil, 400, words)
		if !strings.HasSuffix(text, quote.BlockEnd) {
			t.Fatalf("the block does not end:\n%s", text)
		}
		return ParseList(text, LedgerTitle), strings.TrimSuffix(text[strings.Index(text, LedgerTitle):], quote.BlockEnd)
	}
	var lines []string
	for i := range 40 {
		what := "strptime variant %d of the date format fails on ambiguous months in the sample"
		if i%10 == 9 {
			what = "approach%d%[1]d with its%[1]d own%[1]d words%[1]d only%[1]d"
		}
		lines = append(lines, fmt.Sprintf("op %d, back to step %d: ", 10+i, i)+fmt.Sprintf(what, i))
	}
	got, _ := render(lines, 10_000)
	if !slices.Equal(got, lines) {
		t.Errorf("%d lines: %q", len(got), got)
	}
	long := "op 7, back to step 2: " + strings.Repeat("word ", 90)
	if got, _ = render([]string{long}, 10_000); len(strings.Fields(got[0])) > maxLedgerTokens {
		t.Errorf("a line of %d tokens: %q", len(strings.Fields(got[0])), got)
	}
	got, text := render(lines, 200)
	all := strings.Join(got, "\n")
	for _, i := range []int{9, 19, 29, 39} {
		if !strings.Contains(all, fmt.Sprintf("approach%d%d", i, i)) {
			t.Errorf("approach %d went, which is like no other:\n%s", i, all)
		}
	}
	if n := words(text); n > 200 || !strings.Contains(all, "op 10 and ") || !strings.Contains(all, " variants to op ") {
		t.Errorf("%d tokens:\n%s", n, all)
	}
	_,
		text = render(append(got,
		"op 99, back to step 3: strptime variant 99 of the date format fails on ambiguous months in the sample"), words(text))
	stands := 0
	for _, l := range ParseLedger("\n" + text) {
		stands += l.More + 1
	}
	if stands != 41 ||
		!strings.Contains(text, " to op 99, back to step ") && !strings.Contains(text, "op 99, back to") {
		t.Errorf("they stand for %d paths of 41:\n%s", stands, text)
	}
	if got, text = render(lines, 30); words(text) > 40 ||
		!strings.Contains(text, "- op 10 and 38 variants to op 48, the oldest\n") {
		t.Errorf("%d tokens of 30: %q", words(text), got)
	}
}

// TestLedgerMerges: paths are merged if the ledger is one token too large: those alike keep the first one's words,
// others become the oldest.
func TestLedgerMerges(t *testing.T) {
	left := func(seq uint64, why string) Left { return Left{First: seq, Last: seq, Text: "back to step 1: " + why} }
	for name, tt := range map[string]struct {
		list []Left
		want string
	}{
		"alike": {[]Left{left(5, "dates are ambiguous here"), left(7, "dates are ambiguous there")},
			"op 5 and 1 variant to op 7, back to step 1: dates are ambiguous here"},
		"unlike": {[]Left{left(5, "dates are ambiguous"), left(7, "no such module")},
			"op 5 and 1 variant to op 7, the oldest"},
		"half": {[]Left{left(5, "one two three four"), left(7, "one two five six")},
			"op 5 and 1 variant to op 7, the oldest"},
		"later": {[]Left{left(3, "no such module"), left(5, "dates are ambiguous here"),
			left(7, "dates are ambiguous there")},
			"op 3, back to step 1: no such module|op 5 and 1 variant to op 7, back to step 1: dates are ambiguous here"},
	} {
		n := words(ledgerLines(&Span{Ledger: tt.list, LedgerTokens: 1000}, words))
		same := ParseLedger("\n" + ledgerLines(&Span{Ledger: tt.list, LedgerTokens: n}, words))
		if !slices.Equal(same, tt.list) {
			t.Errorf("%s: %d tokens do not fit: %+v", name, n, same)
		}
		var got []string
		for _, l := range ParseLedger("\n" + ledgerLines(&Span{Ledger: tt.list, LedgerTokens: n - 1}, words)) {
			got = append(got, l.String())
		}
		if strings.Join(got, "|") != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestLedgerLine: a line as long as it may be stays whole, and of a longer one the beginning does.
func TestLedgerLine(t *testing.T) {
	for n, want := range map[int]bool{maxLedgerTokens: true, maxLedgerTokens + 1: false} {
		line := Left{First: 7, Last: 7, Text: strings.TrimSpace(strings.Repeat("wordnumber ", n-2))}
		got := ledgerLines(&Span{Ledger: []Left{line}, LedgerTokens: 1000}, words)
		if whole := strings.Contains(got, line.Text+"\n"); whole != want || strings.Contains(got, "…\n") == want ||
			words(got) > maxLedgerTokens+1+words(LedgerTitle) {
			t.Errorf("%d tokens: whole %v, %q", n, whole, got)
		}
	}
}
