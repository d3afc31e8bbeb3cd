package anamnesis

import (
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

// TestBlockTellsOfThePath: edits, figures and time limits of the path are in its block.
func TestBlockTellsOfThePath(t *testing.T) {
	s := newSpan(12, 3)
	s.call("StrReplace", `{"path":"a.py","edit":{"old":"x = 1","new":"x = 2"}}`, op.ToolReturned{Writes: []string{"a.py"}})
	s.save("1", "a.py")
	s.bash("sed -i s/a/b/ src/b.py", 0, "", "")
	s.save("2", "src/b.py")
	s.bash("python3 gen.py", 0, "", "")
	s.save("3", "c.py")
	s.bash("pytest -q", 1, "E   assert 1 == 2\n=== 2 failed, 10 passed in 0.3s ===\n", "")
	s.bash("python3 train.py", 0, "begin\naccuracy: 0.83\nsaved\n", "")
	s.bash("python3 old.py || true", 0, "Traceback (most recent call last):\nValueError: no dates\n", "")
	exit := -1
	s.call("Bash", `{"command":"python3 slow.py"}`, op.ToolReturned{Text: "[timed out after 2m0s: the command and everything it had started were ended]", Exit: &exit, IsError: true, Millis: 120_000})
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
	if strings.Contains(block, "sed -i s/a/b/ src/b.py succeeded") || !strings.Contains(block, "python3 gen.py succeeded") {
		t.Errorf("an edit verifies nothing, a run does:\n%s", block)
	}
}
