package failure

import "regexp"

// maxTestLines is how far the name of a test may stand from the telling line.
const maxTestLines = 80

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
