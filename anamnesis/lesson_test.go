package anamnesis

import (
	"fmt"
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

// TestJumpIsNoLesson: a jump that was not scheduled is no failure of the work.
func TestJumpIsNoLesson(t *testing.T) {
	s := newSpan(7, 1)
	s.bash("go vet ./...", 1, "", "main.go:3:2: undefined: parse")
	s.call("jump_to_step", `{"step_id":99,"reason":"x"}`,
		op.ToolReturned{Text: "Not scheduled: there is no step 99.", IsError: true})
	r := s.request(4000)
	res, err := Pass(t.Context(), nil, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(res.Block, "undefined: parse") || strings.Contains(res.Block, "Not scheduled") {
		t.Errorf("block:\n%s", res.Block)
	}
}

// TestOnlyModelsWordCards: without a model a path gives a block and no card, whatever failed on it.
// What failed without a lesson is not named and is no falsified path.
func TestOnlyModelsWordCards(t *testing.T) {
	s := newSpan(7, 1)
	s.bash("grep -n 'a|b' main.go", 1, "", "")
	s.bash("go vet ./...", 1, "", "main.go:3:2: undefined: parse")
	s.bash("go test ./...", 1, "", "main.go:4:2: undefined: render")
	s.bash("go test ./...", 0, "", "")
	res := pass(t, nil, s.request(4000), nil)
	if len(res.Cards) != 0 || res.NoCards != "only a model words cards" {
		t.Errorf("%d cards, %q", len(res.Cards), res.NoCards)
	}
	for says, want := range map[string]bool{"grep": false, "undefined: parse": true, "succeeded later": true} {
		if strings.Contains(res.Block, says) != want {
			t.Errorf("%q in the block is %v:\n%s", says, !want, res.Block)
		}
	}
	if len(res.Notes.Falsified) != 1 || !strings.Contains(res.Notes.Falsified[0].Action, "go vet") {
		t.Errorf("falsified: %+v", res.Notes.Falsified)
	}
}

// TestQuotedError: the error quoted is the line that tells, as it was printed:
// no colour, no wrapping undone, and not the head of a traceback.
func TestQuotedError(t *testing.T) {
	long := "error: the package could not be built because the compiler that it asks for, version 14, is gone"
	for _, tt := range []struct{ name, stdout, stderr, want string }{
		{"a traceback", "starting\n", "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\nValueError: no unit\n", "ValueError: no unit"},
		{"colour", "\x1b[31merror\x1b[0m: no rule\nmaking clean\n", "", "error: no rule"},
		{"wrapped", long[:80] + "\n" + long[80:] + "\n", "", long[:80]},
		{"a summary behind it", "reading input\nlost the connection\nexit status 1\nFAIL\n", "", "lost the connection"},
		{"plain on both", "reading input\nhalf way\n", "the lamp is out\n", "the lamp is out"},
		{"nothing", "\n \n", "", ""},
		{"announced", "making\nerror: the build broke:\n    no such unit\n", "",
			"error: the build broke: no such unit"},
	} {
		s := newSpan(7, 1)
		s.bash("make", 2, tt.stdout, tt.stderr)
		res := pass(t, nil, s.request(4000), nil)
		if len(res.Notes.Falsified) != 1 || res.Notes.Falsified[0].Error != tt.want {
			t.Errorf("%s: %+v, want %q", tt.name, res.Notes.Falsified, tt.want)
		}
	}
}

// TestModelWithoutLesson: a falsified path or a card that a model rests on
// failures without a lesson alone is dropped, and counted.
func TestModelWithoutLesson(t *testing.T) {
	s := newSpan(7, 1)
	quiet := s.bash("grep -n parse main.go", 1, "", "")
	vet := s.bash("go vet ./...", 1, "", "main.go:3:2: undefined: parse")
	for cited, want := range map[string]int{fmt.Sprint(quiet): 0, fmt.Sprintf("%d, %d", quiet, vet): 1} {
		m := &scripted{t: t, limit: 4000, count: words, answers: answers{says(fmt.Sprintf(`{"falsified":[{"action":"look for parse","error":"","ops":[%[1]s]}],
			"cards":[{"topic":"parse is not there","issue":["i"],"solution":["s"],"ops":[%[1]s]}]}`, cited))}}
		res := pass(t, m, s.request(4000), nil)
		asked := 0
		for _, f := range res.Notes.Falsified {
			if f.Action == "look for parse" {
				asked++
			}
		}
		if asked != want || len(res.Cards) != want || (res.Dropped == 0) != (want == 1) {
			t.Errorf("citing %s: %d paths, %d cards, %d dropped; want %d of each", cited, asked, len(res.Cards),
				res.Dropped, want)
		}
	}
}
