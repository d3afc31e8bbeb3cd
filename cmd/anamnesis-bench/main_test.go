//go:build unix

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"anamnesis-bench": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(cond string) (bool, error) {
			return cond == "heavy" && !testing.Short() && os.Getenv("ANAMNESIS_CI") != "", nil
		},
	})
}

// TestUsage: a wrong command line ends with exit code 2 and one line that says
// what to do instead.
func TestUsage(t *testing.T) {
	for line, want := range map[string]string{
		"nonsense":                           `unknown command "nonsense"`,
		"loops":                              "requires at least 1 arg",
		"loops /nonexistent":                 "no such file",
		"memory --arm nonsense":              `there is no arm "nonsense"; the arms are none, forget, dmail`,
		"memory --tasks 1":                   "2 to 20000 are possible",
		"memory --only nonsense":             "the parts are repair, cards, complete",
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
