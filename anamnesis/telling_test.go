package anamnesis

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/opstream/op"
)

// errorLine says the same as saysError, readably and slowly.
var errorLine = regexp.MustCompile(`(?i)\b(error|errors|fail|failed|failure|fatal|panic|exception|traceback|undefined|cannot|can't|could not|not found|no such|denied|refused|unknown|invalid|unexpected|expected|missing|mismatch|conflict|unable|abort(ed)?|timed? ?out|want|assert\w*|segmentation|unresolved|undeclared)\b|错误|失败|异常|找不到|^E\s|Error:|Exception:`)

func TestTellingLines(t *testing.T) {
	for _, line := range []string{
		"", "E", "E x", "Ex", "e\tx", "ok", "undefined: yyNewParser", "TypeError: x", "KeyError", "java.lang.Exception: x", "xerror: 1",
		"I can't", "can’t", "cant", "could  not", "could not", "not found", "notfound", "no such", "time out", "timed  out", "timeout", "Timed-out",
		"assertEqual(a, b)", "reassert", "ASSERTION", "want 4", "unwanted", "wants", "a_error", "error_", "中文错误：", "失败", "文件找不到", "é error é",
		"a.go:12:", "a.go(3)", "a:1", "x.y:z", "1.2:3", "./p/a_test.go:31: got", ":1", "a.b c:1",
	} {
		checkTelling(t, line)
	}
	words := strings.Fields(`error errors fail failed failure fatal panic exception traceback undefined cannot can't can t could not found no such
		denied refused unknown invalid unexpected expected missing mismatch conflict unable abort aborted time timed out timeout timedout want
		assert segmentation unresolved undeclared E a.go x 12 错误 失败 异常 找不到 é _ Supersegmentation`)
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 6).Draw(t, "n") {
			w := rapid.SampledFrom(words).Draw(t, "word")
			if rapid.Bool().Draw(t, "upper") {
				w = strings.ToUpper(w)
			}
			b.WriteString(w)
			b.WriteString(rapid.SampledFrom([]string{" ", "", "'", ":", "(", "_", ".", "  ", "1", "x"}).Draw(t, "between"))
		}
		checkTelling(t, b.String())
	})
}

func checkTelling(t interface{ Errorf(string, ...any) }, line string) {
	if got, want := saysError(line), errorLine.MatchString(line); got != want {
		t.Errorf("%q says what went wrong: %v, want %v", line, got, want)
	}
	if got, want := saysWhere(line), place.MatchString(line); got != want {
		t.Errorf("%q says where: %v, want %v", line, got, want)
	}
}

func BenchmarkSaysError(b *testing.B) {
	line := strings.Repeat("noise of the test run ", 4)
	for b.Loop() {
		saysError(line)
	}
}

// TestJumpIsNoLesson: a jump that was not scheduled is no failure of the work,
// and no card's topic.
func TestJumpIsNoLesson(t *testing.T) {
	s := newSpan(7, 1)
	s.bash("go vet ./...", 1, "", "main.go:3:2: undefined: parse")
	s.call("jump_to_step", `{"step_id":99,"reason":"x"}`, op.ToolReturned{Text: "Not scheduled: there is no step 99.", IsError: true})
	r := s.request(4000)
	res, err := Pass(t.Context(), nil, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Cards) != 1 || !strings.Contains(res.Block, "undefined: parse") {
		t.Fatalf("%d cards; block:\n%s", len(res.Cards), res.Block)
	}
	if text := res.Cards[0].Topic + fmt.Sprint(res.Cards[0].Issue) + res.Block; strings.Contains(text, "Not scheduled") {
		t.Errorf("the card or the block takes it for a lesson:\n%s", text)
	}
}

// TestCardWithoutFailure: where no call failed on a path, its card rests on what
// the agent said. That names no place, so the card says what was being done: in
// another project it would be taken for that one's own.
func TestCardWithoutFailure(t *testing.T) {
	s := newSpan(7, 1)
	s.say("I take rocksdb.")
	s.write("build.conf", "backend=rocksdb\n")
	r := s.request(4000)
	r.Reason, r.Goal = "no cache works on rocksdb", "Repair the\nproject depot-221d. "+strings.Repeat("All its tests fail. ", 50)
	card := func() string {
		res, err := Pass(t.Context(), nil, r, nil)
		if err != nil || len(res.Cards) != 1 {
			t.Fatalf("%v: %d cards", err, len(res.Cards))
		}
		return fmt.Sprint(res.Cards[0].Constraint)
	}
	if text := card(); !strings.Contains(text, "no call failed") || !strings.Contains(text, "Repair the project depot-221d.") || len(text) > 400 {
		t.Errorf("constraint %q", text)
	}
	if r.Goal = ""; card() != "[]" {
		t.Errorf("constraint %q of a goal that is not known", card())
	}
	s.bash("go vet ./...", 1, "", "main.go:3:2: undefined: parse")
	r = s.request(4000)
	if r.Goal = "Repair it."; strings.Contains(card(), "Repair it.") || !strings.Contains(card(), "Seen in world") {
		t.Errorf("constraint %q where a call failed", card())
	}
}

// TestErrorQuote: the first line that names an error is quoted; where none does,
// the last that was printed, and what came as an error rather than as output.
func TestErrorQuote(t *testing.T) {
	for _, tt := range []struct {
		name    string
		outputs []string
		want    string
	}{
		{"an error among others", []string{"building\nerror: no rule\nerror: it follows\nmaking clean"}, "error: no rule error: it follows"},
		{"numbers, then words", []string{"1\n2\n100\n101\nthe disk is gone"}, "the disk is gone"},
		{"a summary behind it", []string{"reading input\nlost the connection\nexit status 1\nFAIL"}, "lost the connection"},
		{"a summary alone", []string{"FAIL"}, "FAIL"},
		{"plain on both", []string{"reading input\nhalf way", "the lamp is out"}, "the lamp is out"},
		{"an error in the output", []string{"error: no rule", "the lamp is out"}, "error: no rule"},
		{"nothing", []string{"", "\n \n"}, ""},
	} {
		if got := ErrorQuote(tt.outputs...); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
