// Package spelling finds the name that was meant by one with a slip.
package spelling

import "strings"

// Nearest returns the name most similar to the given one; empty if none is similar.
func Nearest(name string, names []string) string {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
	}
	const maxNameLen = 64
	if len(name) > maxNameLen {
		return ""
	}
	want, best, bestDistance := plain(name), "", 0
	for _, n := range names {
		have := plain(n)
		d := distance(want, have)
		limit := max(2, len(have)/3)
		if want != "" && (strings.Contains(have, want) || strings.Contains(want, have)) {
			d = min(d, limit)
		}
		if d <= limit && (best == "" || d < bestDistance) {
			best, bestDistance = n, d
		}
	}
	return best
}

// distance returns the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
