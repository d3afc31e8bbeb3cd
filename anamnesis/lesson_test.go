package anamnesis

import (
	"fmt"
	"strings"
	"testing"

	"anamnesis/anamnesis/note"
	"anamnesis/opstream/op"
)

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
	if r.Goal = "Repair it."; strings.Contains(card(), "Repair it.") || !strings.Contains(card(), "Seen after step") {
		t.Errorf("constraint %q where a call failed", card())
	}
}

// TestNoLessonNoCard: a path on which nothing failed that can be learned from
// gives no card unless its reason says something and something was done there.
// One line says so. What failed without a lesson is counted in the block and is
// no falsified path.
func TestNoLessonNoCard(t *testing.T) {
	const long = "the generator overwrites what I edit by hand"
	quietGrep := func(s *span) { s.bash("grep -n 'a|b' main.go", 1, "", "") }
	for _, tt := range []struct {
		name, reason string
		build        func(*span)
		card         bool
		says         string // of NoCards, or of the block where there is a card
	}{
		{"nothing", " ", func(s *span) { s.bash("make", 0, "", "") }, false, "too little"},
		{"two words", "wrong way", func(s *span) { s.write("a.go", "x") }, false, "too little"},
		{"two words in Chinese", "走错了", func(s *span) { s.write("a.go", "x") }, false, "too little"},
		{"only looked", long, func(s *span) { s.read("a.go", "x"); s.bash("ls", 0, "a.go\n", "") }, false, "nothing was done"},
		{"no hit", "wrong way", quietGrep, false, "too little"},
		{"no hit, as the tool says it", "wrong way", func(s *span) {
			exit := 1
			s.call("Bash", `{"command":"cd a && grep x f"}`, op.ToolReturned{Text: "[no output]\n[exit 1]", Exit: &exit, IsError: true})
		}, false, "too little"},
		{"timeout", "wrong way", func(s *span) {
			exit := 124
			s.call("Bash", `{"command":"sleep 900"}`, op.ToolReturned{
				Text: "[no output]\n[timed out after 2m0s: the command and everything it had started were ended]\n[exit 124]", Exit: &exit, IsError: true})
		}, false, "too little"},
		{"unknown tool", "wrong way", func(s *span) {
			s.call("Bahs", `{}`, op.ToolReturned{Text: `There is no tool "Bahs".`, IsError: true})
		}, false, "too little"},
		{"refused", "wrong way", func(s *span) {
			s.call("Bash", `{"command":"rm -rf x"}`, op.ToolReturned{Text: "refused by the user", Refused: true, IsError: true})
		}, false, "too little"},
		{"a reason and work", long, func(s *span) { s.write("a.go", "x") }, true, long},
		{"a reason in Chinese and work", "生成器会覆盖我的手工修改", func(s *span) { s.write("a.go", "x") }, true, "生成器"},
		{"a failure beside a silent search", "wrong way", func(s *span) { quietGrep(s); s.bash("go vet ./...", 1, "", "main.go:3:2: undefined: parse") }, true, "no hit: Bash: grep"},
		{"a failure that was overcome", "wrong way", func(s *span) {
			s.bash("go vet ./...", 1, "", "main.go:3:2: undefined: parse")
			s.bash("go vet ./...", 0, "", "")
		}, true, "succeeded later"},
	} {
		s := newSpan(7, 1)
		tt.build(s)
		r := s.request(4000)
		r.Reason = tt.reason
		res := pass(t, nil, r, nil)
		says := res.NoCards
		if tt.card {
			says = res.Block
		}
		if (len(res.Cards) > 0) != tt.card || !strings.Contains(says, tt.says) || strings.Contains(res.NoCards, "\n") {
			t.Errorf("%s: %d cards, %q; block:\n%s", tt.name, len(res.Cards), res.NoCards, res.Block)
		}
		for _, f := range res.Falsified {
			if !strings.Contains(f.Action, "go vet") {
				t.Errorf("%s: a falsified path from what is no failure to learn from: %+v", tt.name, f)
			}
		}
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
	} {
		s := newSpan(7, 1)
		s.bash("make", 2, tt.stdout, tt.stderr)
		res := pass(t, nil, s.request(4000), nil)
		if len(res.Falsified) != 1 || res.Falsified[0].Error != tt.want {
			t.Errorf("%s: %+v, want %q", tt.name, res.Falsified, tt.want)
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
		for _, f := range res.Falsified {
			if f.Action == "look for parse" {
				asked++
			}
		}
		if asked != want || len(res.Cards) != want || (res.Dropped == 0) != (want == 1) {
			t.Errorf("citing %s: %d paths, %d cards, %d dropped; want %d of each", cited, asked, len(res.Cards), res.Dropped, want)
		}
	}
}

// TestWorkedElsewhere: the card that a failed call's result showed leaves the context
// with it; the block keeps what it says worked, and a later block takes that over.
func TestWorkedElsewhere(t *testing.T) {
	s := newSpan(7, 1)
	exit := 1
	s.add(&op.ToolCalled{Call: "a", Name: "Bash", Args: `{"command":"python3 -m pytest"}`})
	s.add(&op.CardsRecalled{Why: "failure", Cards: []op.CardRef{{ID: "okyp24f7", Tries: []string{"bin/test sympy/core"}}}})
	s.add(&op.ToolReturned{Call: "a", Name: "Bash", Text: "/usr/bin/python3: No module named pytest", Stderr: "/usr/bin/python3: No module named pytest", Exit: &exit, IsError: true})
	r := s.request(4000)
	res := pass(t, nil, r, nil)
	const want = "  worked elsewhere: bin/test sympy/core (lesson okyp24f7)\n"
	if !strings.Contains(res.Block, want) {
		t.Fatalf("no %q in\n%s", want, res.Block)
	}
	if f := note.ParseFalsified(res.Block); len(f) != 1 || f[0].Elsewhere != "bin/test sympy/core (lesson okyp24f7)" {
		t.Errorf("read back as %+v", f)
	}
}
