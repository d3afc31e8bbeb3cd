package failure

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// errorLine says the same as namesError, readably and slowly.
var errorLine = regexp.MustCompile(`(?i)\b(error|errors|fail|failed|failure|fatal|panic|exception|traceback|undefined|cannot|can't|couldn't|could not|not (found|exists?|allowed|supported|permitted|recognized|defined|installed|available)|t exist|no such|denied|refused|unknown|invalid|unexpected|expected|missing|mismatch|conflict|unable|abort(ed)?|timed? ?out|want|assert\w*|segmentation|unresolved|undeclared|fehler|erreur|impossible|introuvable|unhandled|uncaught|terminating|killed|crashed|illegal|unbound|unsupported|unrecognized|rejected|violation|violates|unterminated|mismatched|incompatible|ambiguous|forbidden|unauthorized|unreachable|exceeded|exceeds|overflow|corrupt|malformed)\b|错误|失败|异常|找不到|没有|无法|未找到|不存在|不允许|不够|拒绝|未定义|缺少|未声明|冲突|エラー|失敗|ありません|できません|échec|unmöglich|ошибк|не удалось|^E\s|(Error|Exception|Rejection)(:| \[)`)

func TestNamesError(t *testing.T) {
	for _, line := range []string{
		"", "E", "E x", "Ex", "e\tx", "ok", "undefined: yyNewParser", "TypeError: x", "KeyError", "java.lang.Exception: x", "xerror: 1",
		"I can't", "can’t", "cant", "could  not", "could not", "not found", "notfound", "no such", "time out", "timed  out", "timeout", "Timed-out",
		"assertEqual(a, b)", "reassert", "ASSERTION", "want 4", "unwanted", "wants", "a_error", "error_", "中文错误：", "失败", "文件找不到", "é error é",
		"a.go:12:", "a.go(3)", "a:1", "x.y:z", "1.2:3", "./p/a_test.go:31: got", ":1", "a.b c:1",
	} {
		checkSays(t, line)
	}
	words := strings.Fields(`error errors fail failed failure fatal panic exception traceback undefined cannot can't can t could not found no such
		denied refused unknown invalid unexpected expected missing mismatch conflict unable abort aborted time timed out timeout timedout want
		assert segmentation unresolved undeclared not exist allowed t Rejection fehler 未声明 E a.go x 12 错误 失败 异常 找不到 无法 缺少 é _ Supersegmentation`)
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 6).Draw(t, "n") {
			w := rapid.SampledFrom(words).Draw(t, "word")
			if rapid.Bool().Draw(t, "upper") {
				w = strings.ToUpper(w)
			}
			b.WriteString(w)
			b.WriteString(rapid.SampledFrom([]string{" ", "", "'", ":", "(", "_", ".", "  ", "1", "x", " ["}).Draw(t, "between"))
		}
		checkSays(t, b.String())
	})
}

func checkSays(t interface{ Errorf(string, ...any) }, line string) {
	if got, want := namesError(line), errorLine.MatchString(line); got != want {
		t.Errorf("%q says what went wrong: %v, want %v", line, got, want)
	}
}

func BenchmarkNamesError(b *testing.B) {
	line := strings.Repeat("noise of the test run ", 4)
	for b.Loop() {
		namesError(line)
	}
}
