package anamnesis

import (
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

// TestBlockTellsOfThePath: edits, figures and time limits of the path are in its block.
func TestBlockTellsOfThePath(t *testing.T) {
	s := newSpan(12, 3)
	s.call("StrReplace", `{"path":"a.py","edit":{"old":"x = 1","new":"x = 2"}}`,
		op.ToolReturned{Writes: []string{"a.py"}})
	s.save("1", "a.py")
	s.bash("sed -i s/a/b/ src/b.py", 0, "", "")
	s.save("2", "src/b.py")
	s.bash("python3 gen.py", 0, "", "")
	s.save("3", "c.py")
	s.bash("pytest -q", 1, "E   assert 1 == 2\n=== 2 failed, 10 passed in 0.3s ===\n", "")
	s.bash("python3 train.py", 0, "begin\naccuracy: 0.83\nsaved\n", "")
	s.bash("python3 old.py || true", 0, "Traceback (most recent call last):\nValueError: no dates\n", "")
	exit := -1
	s.call("Bash", `{"command":"python3 slow.py"}`, op.ToolReturned{
		Text: "[timed out after 2m0s: the command and everything it had started were ended]", Exit: &exit,
		IsError: true, Millis: 120_000,
	})
	s.save("4")
	block := pass(t, nil, s.request(16000), nil).Block
	for _, want := range []string{
		"- a.py: -x = 1 | +x = 2 (op 13)\n", "- src/b.py: by sed -i s/a/b/ src/b.py (op 16)\n", "- c.py: by python3 gen.py (op 19)\n",
		"exit code 1; it printed “2 failed, 10 passed in 0.3s”", "it printed “accuracy: 0.83”", "python3 old.py || true exited with 0 after step 5: c.py, src/b.py, a.py edited; it printed “ValueError: no dates”", "- Bash: python3 slow.py was ended at its time limit (120 s) (op 28)\n",
	} {
		if !strings.Contains(block, want) {
			t.Errorf("no %q in\n%s", want, block)
		}
	}
	if strings.Contains(block, "sed -i s/a/b/ src/b.py succeeded") ||
		!strings.Contains(block, "python3 gen.py succeeded") {
		t.Errorf("an edit verifies nothing, a run does:\n%s", block)
	}
}

// TestEdits: the list of edits names what calls wrote, or changed without a word, and no more than that.
func TestEdits(t *testing.T) {
	s := newSpan(12, 3)
	s.write("kept.go", "package a\n")
	s.write("empty.go", "")
	s.call("WriteFile", `{"path":"bad.go","content":"x"}`, op.ToolReturned{Text: "error: read-only", IsError: true,
		Writes: []string{"bad.go"}})
	s.call("Move", `{"path":"old.go"}`, op.ToolReturned{Text: "moved", Writes: []string{"old.go", "new.go"}})
	s.save("1", "kept.go", "empty.go")
	s.bash("make gen", 2, "", "")
	s.save("2", "failed.go")
	s.call("Think", `{"thought":"x"}`, op.ToolReturned{})
	s.save("3", "beside.go")
	s.bash("make loud", 0, "made\n", "")
	s.save("4", "loud.go")
	s.bash("make quiet", 0, "", "")
	s.save("5", "quiet.go")
	r := s.request(16000)
	var got []string
	for _, e := range edits(&r, records(&r)) {
		got = append(got, e.Text)
	}
	want := "kept.go: +package a|empty.go: by empty.go (content=\"\")|old.go: by old.go|new.go: by old.go|quiet.go: by make quiet"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

// TestTimeLimit: a command that was ended at its time limit is named with its seconds, if it ran for one; the mark
// stands in the text that the model saw.
func TestTimeLimit(t *testing.T) {
	const mark = "[timed out after 2m0s: the command and everything it had started were ended]"
	for millis, want := range map[int64]string{0: "", 999: "", 1000: " (1 s)", 2500: " (2 s)"} {
		s, exit := newSpan(12, 3), -1
		for range 2 {
			s.call("Bash", `{"command":"./slow"}`, op.ToolReturned{Text: "some output\n" + mark,
				Stdout: "some output\n", Exit: &exit, IsError: true, Millis: millis})
		}
		r := s.request(4000)
		if got := timeLimits(records(&r)); len(got) != 1 ||
			got[0].Text != "Bash: ./slow was ended at its time limit"+want {
			t.Errorf("%d ms: %+v", millis, got)
		}
	}
}

// TestResultLine: of an output the last line with a figure tells how it came out, else the first.
func TestResultLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "one\ntwo\n": "one", "begin\nloss: 0.5\nend\n": "loss: 0.5", "loss: 0.5\nloss: 0.4\n": "loss: 0.4",
		"=== 3 passed ===\n": "3 passed",
		"begin\n%\n":         "begin", "begin\n9%\n": "9%",
	} {
		if got := (&record{stdout: text}).result(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
