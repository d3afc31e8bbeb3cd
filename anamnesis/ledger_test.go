package anamnesis

import (
	"strings"
	"testing"

	"anamnesis/anamnesis/note"
	"anamnesis/opstream/op"
)

// TestLedgerLines: a line names the step and the files that the path had edited, the agent's lesson first. A path
// that a later block lists is not named twice, though its jump is in the span as well.
func TestLedgerLines(t *testing.T) {
	s := newSpan(12, 3)
	s.write("src/parse.py", "x")
	s.write("b.py", "y")
	s.write("a.py", "y")
	s.save("1", "src/parse.py")
	s.add(&op.JumpIntended{From: 3, To: 2, Backward: true, Reason: "dates are ambiguous", Learned: "strptime guesses the locale"})
	s.bash("make", 2, "", "make: *** no rule\n")
	s.add(&op.JumpIntended{From: 4, To: 2, Backward: true, Reason: "there is no Makefile"})
	r := s.request(16000)
	r.Standing, r.From, r.To = true, 2, 4
	first := pass(t, nil, r, nil)
	want := "Paths that you left:\n- op 19, back to step 2 (a.py, b.py and 1 more edited): strptime guesses the locale – dates are ambiguous\n" +
		"- op 22, back to step 2: there is no Makefile\n"
	if !strings.Contains(first.Block, want) {
		t.Errorf("no %q in\n%s", want, first.Block)
	}
	s.add(&op.PassDone{Trigger: op.TriggerWindow, Ranges: s.request(16000).Ranges, Block: first.Block})
	s.add(&op.JumpIntended{From: 6, To: 5, Backward: true, Reason: "a third"})
	if got := note.ParseLedger(pass(t, nil, s.request(16000), nil).Block); len(got) != 3 || got[1].First != 22 || got[2].Text != "back to step 5: a third" {
		t.Errorf("%+v", got)
	}
}
