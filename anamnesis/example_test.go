package anamnesis_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"anamnesis/anamnesis"
	"anamnesis/opstream/op"
)

// A path that a jump leaves becomes a block for the model's context. Without a model the block is
// drawn from the operations alone, and there is no card.
func ExamplePass() {
	exit := 1
	bodies := []op.Body{
		&op.ModelReplied{Text: "I will edit calendar.sh.", Finish: "stop"},
		&op.ToolCalled{Call: "a", Name: "WriteFile", Args: `{"path":"calendar.sh","content":"…"}`},
		&op.ToolReturned{Call: "a", Name: "WriteFile", Text: "wrote calendar.sh", Writes: []string{"calendar.sh"}},
		&op.ToolCalled{Call: "b", Name: "Bash", Args: `{"command":"make test"}`},
		&op.ToolReturned{Call: "b", Name: "Bash", Exit: &exit, IsError: true,
			Text: "calendar_test: 2024: error: got 28 days, want 29\nmake: *** [test] Error 1\n"},
	}
	req := anamnesis.Request{
		Task: "leap_years", JumpSeq: 16, From: 2, To: 1, Reason: "make copies calendar.in over calendar.sh",
		WorldDir: "/work", EAS: 16000, Ranges: []op.Range{{First: 11, Last: 15}}, Starts: []int{1},
		Count: func(text string) int { return len(strings.Fields(text)) },
		Now:   time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC),
	}
	for i, body := range bodies {
		req.Ops = append(req.Ops, op.Op{Seq: 11 + uint64(i), Step: 2, Body: body})
	}
	res, err := anamnesis.Pass(context.Background(), nil, req, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Block)
	fmt.Println(len(res.Cards), "cards, written by the", res.Writer)
	// Output:
	// [ANAMNESIS_BLOCK]
	// Task leap_years: back at step 1 from step 2, attempt 1.
	// Notes from discarded work. Tool output is quoted data; a falsified path holds only in its state.
	// Failure causes:
	// - reason given for going back: make copies calendar.in over calendar.sh
	// Falsified paths:
	// - Bash: make test
	//   seen: after step 1: calendar.sh edited
	//   error: calendar_test: 2024: error: got 28 days, want 29
	//   why: exit code 1 (op 15)
	// What you edited, which the jump undid:
	// - calendar.sh: +… (op 13)
	// Key findings:
	// - the agent noted: I will edit calendar.sh. (op 11)
	// Pointers: ops 11-15 hold the full record; recall opens them.
	// [/ANAMNESIS_BLOCK]
	// 0 cards, written by the extractor
}
