package shell

import (
	"regexp"
	"strings"
	"sync"
)

// Pattern compiles a regular expression on first use, not when the program starts.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// Set returns the names in a list that blanks separate.
func Set(names string) map[string]bool {
	m := map[string]bool{}
	for n := range strings.FieldsSeq(names) {
		m[n] = true
	}
	return m
}

// Glob compares a text with a pattern in which * matches any characters, and ? one.
func Glob(pattern, text string) bool {
	p := []rune(pattern)
	w := []rune(text)
	star, from := -1, 0
	i, j := 0, 0
	for j < len(w) {
		switch {
		case i < len(p) && p[i] == '*':
			star, from = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == w[j]):
			i, j = i+1, j+1
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(string(p[i:]), "*") == ""
}
