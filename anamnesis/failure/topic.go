package failure

import (
	"path"
	"regexp"
	"strings"
)

const (
	maxTestLines   = 80 // from the telling line to the name of the test
	maxSourceBytes = 80 // of a line of source in a topic
)

// testRule finds the name of a failed test on a line of a runner's output. The example
// is an output in which t_sum failed, and it is not found without the rule.
type testRule struct {
	re      func() *regexp.Regexp
	example string
}

var testRules = []testRule{
	{re(`^\s*--- FAIL: (\S+)`), "--- FAIL: t_sum (0.00s)\n    a_test.go:9: it was 3"},
	{re(`^_{3,} (?:\S+:)?([\w.\[\]-]+) _{3,}$`), "____ t_sum ____\n\n>       assert a == 3\nE       assert 2 == 3"},
	{re(`^(?:FAIL|ERROR): (\w+) \(`), "FAIL: t_sum (test_a.A)\n----\nAssertionError: 2 != 3"},
	{re(`^FAILED \S+::([^\s:]+)`), "ValueError: no unit\nFAILED a.py::t_sum - ValueError: no unit"},
	{re(`^\s*● (.*\S)`), "  ● t_sum\n\n    expect(received).toBe(expected)"},
	{re(`^\s*(?:FAIL|×|✗)\s+\S+ > (.*?)(?: \d+ms)?$`), " FAIL  a.test.ts > t_sum\nError: it was 3"},
	{re(`^\s*(?:not ok \d+ - |✖ )(.*?)(?: \([\d.]+ms\))?$`), "✖ t_sum (0.4ms)\n  AssertionError: 2 !== 3"},
	{re(`^thread '([^']*[^'n])'.* panicked at`), "thread 't_sum' panicked at src/a.rs:4:5:\nit was 3"},
}

// testNear returns the name of the test that line i is about: the nearest above, else
// the nearest below.
func (p *page) testNear(i int) string {
	named := func(k int) string {
		for _, r := range testRules {
			if m := r.re().FindStringSubmatch(p.lines[k]); m != nil {
				return m[1]
			}
		}
		return ""
	}
	for k := i; k >= max(0, i-maxTestLines); k-- {
		if name := named(k); name != "" {
			return name
		}
	}
	for k := i + 1; k < min(len(p.lines), i+1+maxTestLines); k++ {
		if name := named(k); name != "" {
			return name
		}
	}
	return ""
}

// failedLine finds the line of source above line i that failed, where the output quotes
// it: pytest's, or the one below the last frame of Python's that is of the project.
func (p *page) failedLine(i int) string {
	const above = 40
	for k := i - 1; k >= max(0, i-above); k-- {
		if source, ok := strings.CutPrefix(p.lines[k], ">   "); ok {
			return strings.TrimSpace(source)
		}
		frame := strings.HasPrefix(strings.TrimSpace(p.lines[k]), `File "`)
		if frame && k+1 < i && !foreign().MatchString(p.lines[k]) {
			return strings.TrimSpace(p.lines[k+1])
		}
	}
	return ""
}

var (
	// speaker is what a line begins with that says who printed it and where.
	speaker = re(`^(?:E\s+|(?:\S*/)?(?:ba|z)?sh: (?:line \d+: )?|/\S+/([\w.-]+: )|(?:\./)?[\w@~./\\-]+\.\w+(?::\d+(?::\d+)?|\(\d+,\d+\)): )`)
	dotted  = re(`^(?:[a-z_]\w*\.)+([A-Z]\w*(?:Error|Exception|Warning|Configured|NotFound|Exist)\b)`)
	values  = re(`^(?:AssertionError|assert\b)`)
)

// Topic says in one line what failed and where, in words that a later task can search
// by: the test or the function, the file, and what went wrong. Where the line holds
// no more than values, it is what was compared.
func (f *Failure) Topic() string {
	line := dotted().ReplaceAllString(speaker().ReplaceAllString(f.Line, "$1"), "$1")
	source := strings.TrimRight(f.Source, ":")
	if source != "" && len(source) <= maxSourceBytes && (values().MatchString(line) || bare(Normal(line))) && !strings.Contains(line, source) {
		line = source + ": " + line
	}
	where := f.Test
	if where == "" {
		where = f.In
	}
	file, _, _ := strings.Cut(f.Place, ":")
	if file = path.Base(strings.ReplaceAll(file, `\`, "/")); file == "." || strings.Contains(line, file) {
		file = ""
	}
	switch {
	case where == "" || strings.Contains(line, where):
		where = file
	case file != "":
		where += " in " + file
	}
	if where == "" {
		return line
	}
	return where + ": " + line
}
