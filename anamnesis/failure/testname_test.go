package failure

import "testing"

// TestTestRules: each rule finds the test of its example, which no other rule finds.
func TestTestRules(t *testing.T) {
	for i, r := range testRules {
		read := func() string {
			f, _ := Read(Output{Text: r.example, Error: true})
			return f.Test
		}
		if got := read(); got != "t_sum" {
			t.Errorf("%s: test %q", r.re(), got)
		}
		testRules[i].re = re(`^\z.`)
		if got := read(); got != "" {
			t.Errorf("%s moves nothing: without it the test is %q", r.re(), got)
		}
		testRules[i] = r
	}
}
