package anamnesis

import (
	"fmt"
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

// TestNextCheck: the check named is one that the files after the jump can run, and the shortest of these.
func TestNextCheck(t *testing.T) {
	type ran struct {
		command string
		seconds int64
	}
	for _, tt := range []struct {
		name    string
		ran     []ran // and failed; the path made made.py
		changed int
		want    string // empty: none
	}{
		{"the shortest", []ran{{"go test ./...", 90}, {"go vet ./...", 3}}, 1, "Bash: go vet ./... (3 s)"},
		{"made on the path", []ran{{"python3 made.py", 1}, {"go test ./...", 90}}, 1, "Bash: go test ./... (90 s)"},
		{"its test, too", []ran{{"pytest ./made.py::test_a", 1}, {"python3 /work/dir/made.py", 1}}, 1, ""},
		{"absent program", []ran{{"javac A.java", 1}}, 1, ""},
		{"no check", []ran{{"mkdir x && touch x/y", 1}, {"curl https://x.example", 1}}, 1, ""},
		{"only looks", []ran{{"cat a.txt", 1}}, 1, ""},
		{"too long to be named", []ran{{"python3 -c '" + strings.Repeat("x = 1; ", 40) + "'", 1}}, 1, ""},
		{"more changed than is known", []ran{{"go test ./...", 1}}, 400, ""},
	} {
		s := newSpan(12, 3)
		s.write("made.py", "x")
		for i, c := range tt.ran {
			exit, text := 1, fmt.Sprintf("error: number %d of them", i)
			if strings.HasPrefix(c.command, "javac") {
				text = "bash: javac: command not found"
			}
			s.call("Bash", fmt.Sprintf(`{"command":%q}`, c.command), op.ToolReturned{Text: text, Stdout: text, Exit: &exit, IsError: true, Millis: c.seconds * 1000})
		}
		s.add(&op.WorldSaved{Parent: 2, Commit: "c", Tree: "t", Complete: true, Changed: []string{"made.py"}, NChanged: tt.changed})
		block := pass(t, nil, s.request(16000), nil).Block
		_, got, _ := strings.Cut(block, "cheapest next check, once what it depends on has changed: ")
		got, _, _ = strings.Cut(got, " (op")
		if got != tt.want {
			t.Errorf("%s: %q, want %q in\n%s", tt.name, got, tt.want, block)
		}
	}
}
