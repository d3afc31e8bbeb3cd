package model_test

import (
	"fmt"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// TestCallsOf: recorded calls have ids that differ and names of a bounded length; of too many none runs.
func TestCallsOf(t *testing.T) {
	long := strings.Repeat("é", 1000)
	calls,
		refused := model.CallsOf(model.Reply{Calls: []op.Call{{}, {}, {ID: "a"}, {ID: "a", Name: long}, {ID: "call_"}}})
	var ids []string
	for _, c := range calls {
		if ids = append(ids, c.ID); len(c.Name) > model.MaxCallNameBytes {
			t.Errorf("call %+v", c)
		}
	}
	if got := strings.Join(ids, " "); got != "call call_ a a_ call__" || refused != nil {
		t.Errorf("ids %s, refused %v", got, refused)
	}
	for _, tt := range []struct {
		calls, recorded, refused int
		more                     bool
	}{
		{model.MaxCalls, model.MaxCalls, 0, false},
		{model.MaxCalls + 1, model.MaxCalls, model.MaxCalls, false},
		{2, 2, 2, true},
	} {
		calls, refused := model.CallsOf(model.Reply{Calls: make([]op.Call, tt.calls), MoreCalls: tt.more})
		if len(calls) != tt.recorded || len(refused) != tt.refused {
			t.Errorf("%+v: %d calls, %d refused", tt, len(calls), len(refused))
		}
		for i, b := range refused {
			if r := b.(*op.ToolReturned); !r.Refused || r.Call != calls[i].ID {
				t.Errorf("%+v: result %d is %+v", tt, i, r)
			}
		}
	}
}

// TestEstimateUsage: a token for every four bytes begun.
func TestEstimateUsage(t *testing.T) {
	for size, want := range map[int]int{0: 0, 1: 1, 4: 1, 5: 2, 8: 2, 9: 3} {
		text := strings.Repeat("x", size)
		u := model.EstimateUsage(model.Request{Messages: []model.Message{{Text: text}}},
			model.Reply{Text: text, Reasoning: text})
		if got := fmt.Sprint(u.Prompt, u.Reasoning); got != fmt.Sprint(want, want) || u.Completion != (2*size+3)/4 {
			t.Errorf("%d bytes: %+v, want %d tokens", size, u, want)
		}
	}
}
