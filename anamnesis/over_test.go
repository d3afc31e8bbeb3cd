package anamnesis

import (
	"errors"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
)

// TestOver: at a task's end several paths are read at once, each from the world
// it began in; there is no block.
func TestOver(t *testing.T) {
	var ops []op.Op
	for i, b := range []op.Body{
		&op.ToolCalled{Call: "a", Name: "Bash", Args: `{"command":"make a"}`}, &op.ToolReturned{Call: "a", Name: "Bash", Text: "error: no a", IsError: true},
		&op.WorldSaved{Tree: "2222222222222222", Changed: []string{"x"}, NChanged: 1},
		&op.ToolCalled{Call: "b", Name: "Bash", Args: `{"command":"make b"}`}, &op.ToolReturned{Call: "b", Name: "Bash", Text: "error: no b", IsError: true},
	} {
		seq := uint64(10 + i)
		if i > 2 {
			seq += 10
		}
		ops = append(ops, op.Op{Seq: seq, Step: 1, Body: b})
	}
	r := Request{Task: "t", JumpSeq: 24, EAS: 8000, Reason: "wrong", Over: true, Ops: ops, Ranges: []op.Range{{First: 10, Last: 12}, {First: 23, Last: 24}},
		Starts: []int{0, 3},
		Count:  func(s string) int { return len(s) / 4 }, Now: time.Unix(0, 0)}
	res, err := Pass(t.Context(), nil, r, nil)
	if err != nil || res.Block != "" || len(res.Cards) != 0 || len(res.Falsified) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	states := res.Falsified[0].State + " " + res.Falsified[1].State
	if states != "after step 3 after step 0" {
		t.Errorf("states %q: each path begins in its own world", states)
	}
	r.Starts = r.Starts[:1]
	if _, err := Pass(t.Context(), nil, r, nil); !errors.Is(err, ErrBadRequest) {
		t.Errorf("one start for two ranges: %v", err)
	}
}

// TestOverPrompt holds what the model is told at a task's end.
func TestOverPrompt(t *testing.T) {
	r := Request{Task: "t", From: 7, Reason: "wrong", Over: true, Ranges: []op.Range{{First: 10, Last: 12}, {First: 23, Last: 24}}}
	golden(t, "prompt_end.txt", systemText(&r)[:strings.Index(systemText(&r), "You get a part")]+pieceText(&r, "| evidence\n", 1, 1)+"\n")
}
