package failure

import (
	"strings"
	"testing"
)

// Which lines say what went wrong by a word, and which only look like it.
func TestNamesError(t *testing.T) {
	for _, line := range []string{
		"E x", "e\tx", "undefined: yyNewParser", "TypeError: x", "java.lang.Exception: x", "xerror: 1", "UnhandledRejection [x]", "I can't", "could not", "can not",
		"not found", "does not exist", "doesn't exist", "no such", "time out", "timed out", "timeout", "assertEqual(a, b)", "ASSERTION", "want 4", "error", "error`", "error{", "error@", "error[", "error/", "/error", "`error", "{error", "an error.", "e9:error", "中文错误：", "失败",
	} {
		if !namesError(line) {
			t.Errorf("%q says what went wrong", line)
		}
	}
	for _, line := range []string{
		"", "E", "Ex", "ok", "KeyErrors2", "can’t", "cant", "could  not", "notfound", "timed  out", "reassert", "unwanted", "wants", "a_error", "error_", "errora", "errorz", "errorA", "errorZ", "error0", "error9", "aerror", "zerror", "0error", "9error", "a.go:12:", "x.y:z",
	} {
		if namesError(line) {
			t.Errorf("%q says nothing", line)
		}
	}
}

// TestEvidence: how much a line that no rule knows says of what went wrong.
func TestEvidence(t *testing.T) {
	for line, want := range map[string]int{
		"": 0, "=====": 0, "-- . --": 0, "e": 0,
		"all is well":       plain,
		"raise ValueError(": plain, "if error {": plain + 1, "expected(": plain + 1, "when failed {": plain + 1, "    failed when:": plain + 1, "    failed when": named, "when it failed:": certain,
		"the build failed":       named,
		"> Could not resolve it": certain, "> could not resolve it": plain + 1, "Could not resolve it": certain,
	} {
		if got := evidence(line); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}

func BenchmarkNamesError(b *testing.B) {
	line := strings.Repeat("noise of the test run ", 4)
	for b.Loop() {
		namesError(line)
	}
}
