package failure

import (
	"strings"
	"testing"
)

// Which lines say what went wrong by a word, and which only look like it.
func TestNamesError(t *testing.T) {
	for _, line := range []string{
		"E x", "e\tx", "undefined: yyNewParser", "TypeError: x", "java.lang.Exception: x", "xerror: 1", "UnhandledRejection [x]", "I can't", "could not", "can not",
		"not found", "does not exist", "doesn't exist", "no such", "time out", "timed out", "timeout", "assertEqual(a, b)", "ASSERTION", "want 4", "中文错误：", "失败",
	} {
		if !namesError(line) {
			t.Errorf("%q says what went wrong", line)
		}
	}
	for _, line := range []string{
		"", "E", "Ex", "ok", "KeyErrors2", "can’t", "cant", "could  not", "notfound", "timed  out", "reassert", "unwanted", "wants", "a_error", "error_", "a.go:12:", "x.y:z",
	} {
		if namesError(line) {
			t.Errorf("%q says nothing", line)
		}
	}
}

func BenchmarkNamesError(b *testing.B) {
	line := strings.Repeat("noise of the test run ", 4)
	for b.Loop() {
		namesError(line)
	}
}
