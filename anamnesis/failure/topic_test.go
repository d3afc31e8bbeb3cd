package failure

import "testing"

// TestTopic: a topic names the test or the function, the file and the trouble, and where the
// error holds no words, what was compared.
func TestTopic(t *testing.T) {
	for _, tt := range []struct{ output, want string }{
		{"--- FAIL: TestLarge (0.00s)\n    ledger_test.go:35: 131 of 240 bookings are wrong\nFAIL", "TestLarge in ledger_test.go: 131 of 240 bookings are wrong"},
		{"____ test_sum ____\n\n    def test_sum():\n>       assert total([0.1, 0.2]) == 0.3\nE       AssertionError: 0.30000000000000004 != 0.3\n\ntest_a.py:4: AssertionError",
			"test_sum in test_a.py: assert total([0.1, 0.2]) == 0.3: AssertionError: 0.30000000000000004 != 0.3"},
		{"Traceback (most recent call last):\n  File \"/w/run.py\", line 3, in total\n    assert s == 3\nAssertionError", "total in run.py: assert s == 3: AssertionError"},
		{"Traceback (most recent call last):\n  File \"/w/a.py\", line 9, in <module>\n    run()\ndjango.core.exceptions.ImproperlyConfigured: settings are not configured", "a.py: ImproperlyConfigured: settings are not configured"},
		{"bash: line 1: pytest: command not found", "pytest: command not found"},
		{"/usr/bin/python3: No module named pytest", "python3: No module named pytest"},
		{"../tui/test/chat.ts(83,49): error TS2345: Argument of type 'undefined' is not assignable", "chat.ts: error TS2345: Argument of type 'undefined' is not assignable"},
		{"grep: src/a.ts: No such file or directory", "grep: src/a.ts: No such file or directory"},
		{"recwarn\n=== no tests ran in 0.01s ===", "no tests ran in 0.01s"},
	} {
		f, ok := Read(Output{Text: tt.output, Error: true})
		if got := f.Topic(); !ok || got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

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
