package anamnesis

import (
	"slices"
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
	s.add(&op.JumpIntended{From: 3, To: 2, Backward: true, Reason: "dates are ambiguous",
		Learned: "strptime guesses the locale"})
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
	if got := note.ParseLedger(pass(t, nil, s.request(16000), nil).Block); len(got) != 3 || got[1].First != 22 ||
		got[2].Text != "back to step 5: a third" {
		t.Errorf("%+v", got)
	}
}

// TestLedgerOnce: of two lines of one jump the one that stands for more counts, lines that name no jump count once
// each, and a jump forward leaves no path.
func TestLedgerOnce(t *testing.T) {
	block := func(lines ...string) *record {
		return &record{kind: recBlock, text: "[ANAMNESIS_BLOCK]\n" + note.LedgerTitle + ":\n- " +
			strings.Join(lines, "\n- ") + "\n[/ANAMNESIS_BLOCK]"}
	}
	recs := []*record{
		block("op 9, back to step 1: nine", "op 5, back to step 1: five", "by hand", "by hand"),
		block("op 5 and 2 variants to op 8, back to step 1: five", "op 9, back to step 2: nine", "in words"),
		{kind: recCall, seq: 20, writes: []string{"b"}, changed: []string{"a"}},
		{kind: recLeft, seq: 21, to: 3, text: "twenty-one"},
	}
	var got []string
	for _, l := range ledger(recs) {
		got = append(got, l.String())
	}
	want := []string{"by hand", "in words", "op 5 and 2 variants to op 8, back to step 1: five",
		"op 9, back to step 1: nine", "op 21, back to step 3 (a, b edited): twenty-one"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	s := newSpan(12, 3)
	s.add(&op.JumpIntended{From: 3, To: 7, Reason: "forward"})
	s.add(&op.JumpIntended{From: 7, To: 2, Backward: true})
	r := s.request(4000)
	if lines := ledger(records(&r)); len(lines) > 0 {
		t.Errorf("%+v", lines)
	}
}
