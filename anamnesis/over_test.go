package anamnesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"anamnesis/anamnesis/consult"
	"anamnesis/opstream/op"
)

// TestOver: at a task's end several paths are read at once, each from the world
// it began in; there is no block.
func TestOver(t *testing.T) {
	var ops []op.Op
	for i, b := range []op.Body{
		&op.ToolCalled{Call: "a", Name: "Bash", Args: `{"command":"make a"}`},
		&op.ToolReturned{Call: "a", Name: "Bash", Text: "error: no a", IsError: true},
		&op.WorldSaved{Tree: "2222222222222222", Changed: []string{"x"}, NChanged: 1},
		&op.ToolCalled{Call: "b", Name: "Bash", Args: `{"command":"make b"}`},
		&op.ToolReturned{Call: "b", Name: "Bash", Text: "error: no b", IsError: true},
	} {
		seq := uint64(10 + i)
		if i > 2 {
			seq += 10
		}
		ops = append(ops, op.Op{Seq: seq, Step: 1, Body: b})
	}
	r := Request{Task: "t", JumpSeq: 24, EAS: 8000, Reason: "wrong", Over: true, Ops: ops,
		Ranges: []op.Range{{First: 10, Last: 12}, {First: 23, Last: 24}},
		Starts: []int{0, 3},
		Count:  func(s string) int { return len(s) / 4 }, Now: time.Unix(0, 0)}
	res, err := Pass(t.Context(), nil, r, nil)
	if err != nil || res.Block != "" || len(res.Cards) != 0 || len(res.Notes.Falsified) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	states := res.Notes.Falsified[0].State + " " + res.Notes.Falsified[1].State
	if states != "after step 3 after step 0" {
		t.Errorf("states %q: each path begins in its own world", states)
	}
	r.Starts = r.Starts[:1]
	if _, err := Pass(t.Context(), nil, r, nil); !errors.Is(err, ErrBadRequest) {
		t.Errorf("one start for two ranges: %v", err)
	}
}

// TestLessonOfPair: a turn's end asks about pairs although no path was left. A lesson that cites both ends of a
// pair quotes it and says what would show it wrong; one that cites less rests on nothing and is dropped.
func TestLessonOfPair(t *testing.T) {
	s := newSpan(1, 1)
	failed := s.bash("npm test", 1, "", "Error: Cannot find module 'left-pad'\n")
	s.save("t1")
	s.add(&op.UserSaid{Text: "never edit package.json", Source: op.SourceSteer})
	s.bash("npm ci", 0, "added 3 packages\n", "")
	s.bash("ls", 0, "node_modules\n", "")
	fixed := s.bash("npm test", 0, "3 passing\n", "")
	s.save("t2")
	r := s.request(8000)
	r.Pairs = Pairs(&r, []bool{true, true, true, true, true})
	r.Ops, r.Ranges, r.Starts, r.Over = nil, nil, nil, true
	reply := `{"cards": [{"topic": "modules come first", "issue": ["a fresh clone has no modules"], "solution": ["run ` + "`npm ci`" + ` before the tests"], "ops": [%d, %d]},
		{"topic": "by hand", "issue": ["something"], "solution": ["else"], "wrong_if": "it is not", "ops": [%d]}]}`
	m := &scripted{t: t, answers: []func(context.Context, string, string) (consult.Completion,
		error){says(fmt.Sprintf(reply, failed, fixed, failed))}, limit: 8000, count: r.Count}
	res, err := Pass(t.Context(), m, r, nil)
	if err != nil || len(res.Cards) != 1 || !res.Paired[res.Cards[0].ID] || res.Block != "" {
		t.Fatalf("%+v, %v", res, err)
	}
	c := res.Cards[0]
	want := "`npm test` failed: Error: Cannot find module 'left-pad'|a fresh clone has no modules|run `npm ci` before the tests|Run before: `npm ci`|Wrong if: the command still fails so after this"
	if got := strings.Join(slices.Concat(c.Issue, c.Solution, c.Constraint), "|"); got != want {
		t.Errorf("the card says\n%s\nwant\n%s", got, want)
	}
	if p := r.Pairs[0].Card.Provenance; c.Provenance.EvidenceHash != p.EvidenceHash ||
		c.Provenance.Ranges[0] != p.Ranges[0] || c.Provenance.Model == WriterExtractor {
		t.Errorf("provenance %+v, want the pair's", c.Provenance)
	}
	for _, want := range []string{"These operations stayed", "never edit package.json", "Cannot find module", "npm ci"} {
		if !strings.Contains(m.asked[0], want) {
			t.Errorf("the model is not shown %q:\n%s", want, m.asked[0])
		}
	}
	if strings.Contains(m.asked[0], `"ls"`) {
		t.Error("the model reads a call that only looked")
	}
	m = &scripted{t: t, answers: answers{says(`{"cards": []}`)}, limit: 8000, count: r.Count}
	if res, err = Pass(t.Context(), m, r, nil); err != nil || res.NoCards != "the model proposed none" ||
		res.Fallback != "" {
		t.Errorf("of a model without a lesson: %q, %q, %v", res.NoCards, res.Fallback, err)
	}
}

// TestOverPrompt holds what the model is told at a task's end.
func TestOverPrompt(t *testing.T) {
	r := Request{
		Task: "t", From: 7, Reason: "wrong", Over: true,
		Ranges: []op.Range{{First: 10, Last: 12}, {First: 23, Last: 24}},
	}
	golden(t, "prompt_end.txt",
		systemText(&r)[:strings.Index(systemText(&r), "You get a part")]+pieceText(&r, "| evidence\n", 1, 1)+"\n")
}
