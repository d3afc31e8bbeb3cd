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
