package timeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/timeline"
)

// steps is a timeline of the steps 0 to its value.
type steps int

func (s steps) CheckJump(to int) error {
	if to > int(s) {
		return fmt.Errorf("there is no step %d, the steps are 0-%d", to, s)
	}
	return nil
}

func (s steps) Recall(ctx context.Context, m tool.Memory) (string, error) {
	switch {
	case m.Query == "nothing":
		return "", nil
	case m.Query == "fault":
		return "", errors.New("the cards cannot be read")
	case m.Op > 0:
		return fmt.Sprintf("op %d from %d", m.Op, m.From), nil
	}
	return "card about " + m.Query, ctx.Err()
}

func TestJumpToStep(t *testing.T) {
	tests := []struct {
		args string
		tl   tool.Timeline
		text string
		jump *op.JumpRequested
	}{
		{`{"step_id":2,"reason":"dead end"}`, steps(5), "Jump to step 2 scheduled: it is made when all calls of this reply are recorded.",
			&op.JumpRequested{To: 2, Reason: "dead end", By: "agent", Call: "c7"}},
		{`{"step_id":0,"reason":"again"}`, steps(5), "Jump to step 0 scheduled: it is made when all calls of this reply are recorded.",
			&op.JumpRequested{To: 0, Reason: "again", By: "agent", Call: "c7"}},
		{`{"step_id":9,"reason":"x"}`, steps(5), "there is no step 9, the steps are 0-5", nil},
		{`{"step_id":2,"reason":"x"}`, nil, "jump_to_step was not run: this call is not part of a task, there is no timeline.", nil},
	}
	for _, tt := range tests {
		r, err := timeline.JumpToStep().Call(t.Context(), &tool.Env{Call: "c7", Timeline: tt.tl},
			json.RawMessage(tt.args))
		if err != nil || r.Text != tt.text || r.IsError != (tt.jump == nil) {
			t.Errorf("%s: %+v, %v; want %q", tt.args, r, err, tt.text)
		}
		if (r.Jump == nil) != (tt.jump == nil) || r.Jump != nil && *r.Jump != *tt.jump {
			t.Errorf("%s: jump = %+v, want %+v", tt.args, r.Jump, tt.jump)
		}
	}
}

func TestRecall(t *testing.T) {
	tests := []struct {
		args string
		tl   tool.Timeline
		text string
		err  bool
	}{
		{`{"query":"auth"}`, steps(1), "card about auth", false},
		{`{"op":312}`, steps(1), "op 312 from 0", false},
		{`{"op":312,"from":8000}`, steps(1), "op 312 from 8000", false},
		{`{"query":"nothing"}`, steps(1), "No card answers this query.", false},
		{`{"query":"fault"}`, steps(1), "the cards cannot be read", true},
		{`{}`, steps(1), "recall was not run: give either query (to search the cards) or op (to open an operation), not both.", true},
		{`{"query":"a","op":1}`, steps(1), "recall was not run: give either query (to search the cards) or op (to open an operation), not both.", true},
		{`{"query":"a"}`, nil, "recall was not run: this call is not part of a task, there is no timeline.", true},
	}
	for _, tt := range tests {
		r, err := timeline.Recall().Call(t.Context(), &tool.Env{Timeline: tt.tl}, json.RawMessage(tt.args))
		if err != nil || r.Text != tt.text || r.IsError != tt.err || r.Jump != nil {
			t.Errorf("%s: %+v, %v; want %q", tt.args, r, err, tt.text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := timeline.Recall().Call(ctx, &tool.Env{Timeline: steps(1)}, json.RawMessage(`{"query":"a"}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the context's", err)
	}
}
