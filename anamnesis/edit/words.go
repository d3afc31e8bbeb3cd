package edit

import (
	"strings"

	"anamnesis/anamnesis/shell"
)

// functionWords say nothing about a repair; comments are full of them. The list has no
// other source: it was written here for comments in English and has no Chinese words.
var functionWords = shell.Set("the an of to in is it we be if by as at on or and but not this that with for from so let can will just need needs since there then than are was use using used don doesn ll here have has had its also any some all into like more now one only other our should which would you your try expect however because actually")

var word = shell.Pattern(`[A-Za-z_][A-Za-z0-9_]*|\B--?[A-Za-z][\w-]*`)

// Names returns the identifiers and options of a text, as often as they occur.
func Names(s string) []string { return word().FindAllString(s, -1) }

// Words returns the distinct identifiers and options of a text, in lower case
// and in order.
func Words(s string) []string {
	var out []string
	seen := map[string]bool{}
	for _, w := range Names(s) {
		w = strings.ToLower(w)
		if len(w) > 1 && !seen[w] && !functionWords[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}

// WordSet returns the words of a text, as [Words] does, as a set.
func WordSet(text string) map[string]bool {
	m := map[string]bool{}
	for _, w := range Words(text) {
		m[w] = true
	}
	return m
}

// Overlap returns the share of their words that two sets have in common, from 0 to 1.
func Overlap(a, b map[string]bool) float64 {
	n := 0
	for w := range a {
		if b[w] {
			n++
		}
	}
	return float64(n) / float64(max(1, len(a)+len(b)-n))
}
