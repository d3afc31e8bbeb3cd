package note

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"anamnesis/anamnesis/quote"
)

// LedgerTitle is the title of the list of paths that were left. It ends a block, and [ParseLedger] reads it back.
const LedgerTitle = "Paths that you left"

// Limits of the ledger.
const (
	maxLedgerTokens = 30 // of a line
	alike           = 0.5
)

// Left is a line of the ledger: a path that was left, or several alike.
type Left struct {
	First, Last uint64 // the operations of the jumps; 0 in a line that does not say
	More        int    // paths beside the first
	Text        string // where to and why
}

// String is the line in a block.
func (l Left) String() string {
	switch {
	case l.First == 0:
		return l.Text
	case l.More == 0:
		return fmt.Sprintf("op %d, %s", l.First, l.Text)
	}
	return fmt.Sprintf("op %d and %s to op %d, %s", l.First, quote.Number(l.More, "variant"), l.Last, l.Text)
}

var leftForm = regexp.MustCompile(`^op (\d+)(?: and (\d+) variants? to op (\d+))?, (.*)$`)

// ParseLedger reads the ledger back out of a block's text.
func ParseLedger(text string) (out []Left) {
	for _, line := range ParseList(text, LedgerTitle) {
		l := Left{Text: line}
		if m := leftForm.FindStringSubmatch(line); m != nil {
			l.First, _ = strconv.ParseUint(m[1], 10, 64)
			l.More, _ = strconv.Atoi(m[2]) // empty: 0
			l.Last, _ = strconv.ParseUint(m[3], 10, 64)
			l.Last, l.Text = max(l.First, l.Last), m[4]
		}
		out = append(out, l)
	}
	return out
}

// ledgerLines renders the ledger. Where it is too large, paths that are alike become one line that counts them, the
// most alike and oldest first; where none are, the oldest do.
func ledgerLines(r *Span, count func(string) int) string {
	if len(r.Ledger) == 0 {
		return ""
	}
	list := slices.Clone(r.Ledger)
	for {
		var b strings.Builder
		b.WriteString(LedgerTitle + ":\n")
		for _, l := range list {
			b.WriteString("- " + clipTokens(quote.Squash(l.String()), maxLedgerTokens, count) + "\n")
		}
		if len(list) == 1 || count(b.String()) <= r.LedgerTokens {
			return b.String()
		}
		i, j := mostAlike(list)
		if i < 0 {
			i, j, list[0].Text = 0, 1, "the oldest"
		}
		list[i].More, list[i].Last = list[i].More+list[j].More+1, max(list[i].Last, list[j].Last)
		list = slices.Delete(list, j, j+1)
	}
}

// mostAlike returns the two paths whose texts share most words, the oldest of several; -1 if none share enough.
func mostAlike(list []Left) (i, j int) {
	ends := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	words := make([]map[string]bool, len(list))
	for i, l := range list {
		_, why, _ := strings.Cut(l.Text, ": ") // reasons are compared, not the steps before them
		words[i] = make(map[string]bool)
		for _, w := range strings.FieldsFunc(strings.ToLower(why), ends) {
			words[i][w] = true
		}
	}
	best, i, j := alike, -1, -1
	for a := range words {
		for b := a + 1; b < len(words); b++ {
			same := 0
			for w := range words[b] {
				if words[a][w] {
					same++
				}
			}
			if share := 2 * float64(same) / float64(max(len(words[a])+len(words[b]), 1)); share > best {
				best, i, j = share, a, b
			}
		}
	}
	return i, j
}

// clipTokens shortens a line to a number of tokens.
func clipTokens(line string, most int, count func(string) int) string {
	out := line
	// Some encodings make several tokens of each character, for which even a short line never fits: 8 ends the loop.
	for runes := 6 * most; count(out) > most && runes > 8; runes = runes * 7 / 8 {
		out = quote.ClipMarked(line, runes)
	}
	return out
}
