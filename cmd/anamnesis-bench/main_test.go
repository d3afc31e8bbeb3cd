//go:build unix

package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestUsage: a wrong command line ends with exit code 2 and one line that says
// what to do instead.
func TestUsage(t *testing.T) {
	for line, want := range map[string]string{
		"nonsense":                           `unknown command "nonsense"`,
		"replay":                             "no --data; name the directory",
		"world":                              "no directory: name one with --dir",
		"world --dir . --program x --only x": `no row "x"`,
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(line), &stdout, &stderr)
		if code != 2 || !strings.Contains(stderr.String(), want) || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, %q; want 2, one line with %q", line, code, stderr.String(), want)
		}
	}
}
