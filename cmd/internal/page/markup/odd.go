package markup

import (
	"fmt"
	"unicode"

	"anamnesis/cmd/internal/term"
)

// maxOdd is how many kinds of invisible characters are named.
const maxOdd = 8

// Odd names the characters of a text that a text field does not show.
func Odd(text string) []string {
	counts := make(map[rune]int)
	var order []rune
	for _, r := range text {
		if r == '\r' || term.Clean(string(r)) == string(r) && !unicode.Is(unicode.Cf, r) {
			continue
		}
		if counts[r]++; counts[r] == 1 {
			order = append(order, r)
		}
	}
	var out []string
	for i, r := range order {
		if i == maxOdd {
			return append(out, fmt.Sprintf("and %d other kinds", len(order)-maxOdd))
		}
		out = append(out, fmt.Sprintf("%U, %d times", r, counts[r]))
	}
	return out
}
