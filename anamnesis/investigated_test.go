package anamnesis

import (
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

// TestInvestigated: what was looked up stands in the block, and is as tainted
// as what it cites.
func TestInvestigated(t *testing.T) {
	ops := func(name, args, cites string) []op.Op {
		investigate := `{"subject":"npm:left-pad","question":"q","findings":"1.3.0 pads on the left","cites":[` +
			cites + `]}`
		var out []op.Op
		for i, b := range []op.Body{
			&op.ToolCalled{Call: "a", Name: name, Args: args},
			&op.ToolReturned{Call: "a", Name: name, Text: "left-pad 1.3.0", Reads: []string{"package.json"}},
			&op.ToolCalled{Call: "b", Name: "investigate", Args: investigate},
			&op.ToolReturned{Call: "b", Name: "investigate", Text: "Recorded for npm:left-pad"},
		} {
			out = append(out, op.Op{Seq: uint64(10 + i), Step: 1, Body: b})
		}
		return out
	}
	tests := []struct {
		name, tool, args, cites string
		tainted                 bool
	}{
		{"a file of the world", "ReadFile", `{"path":"package.json"}`, "11", false},
		{"the call itself", "ReadFile", `{"path":"package.json"}`, "10", false},
		{"the network", "Bash", `{"command":"npm view left-pad"}`, "11", true},
		{"something before the span", "ReadFile", `{"path":"package.json"}`, "3", true},
	}
	for _, tt := range tests {
		r := Request{Task: "t", EAS: 8000, Reason: "wrong", Ops: ops(tt.tool, tt.args, tt.cites),
			Ranges:   []op.Range{{First: 10, Last: 13}},
			WorldDir: "/w", Count: func(s string) int { return len(s) / 4 }}
		recs := records(&r)
		if got := recs[len(recs)-1].tainted; got != tt.tainted {
			t.Errorf("%s: tainted = %v", tt.name, got)
		}
		res, err := Pass(t.Context(), nil, r, nil)
		if err != nil || !strings.Contains(res.Block, "investigated npm:left-pad: 1.3.0 pads on the left (op 13)") {
			t.Errorf("%s: %v\n%s", tt.name, err, res.Block)
		}
	}
}

// TestInvestigationRefused: what a refused call would have recorded was not looked up.
func TestInvestigationRefused(t *testing.T) {
	s := newSpan(7, 1)
	s.call("investigate", `{"subject":"npm:left-pad","findings":"1.3.0 pads on the left"}`,
		op.ToolReturned{Text: "cite something", IsError: true})
	s.bash("make", 2, "", "error: no rule")
	if res := pass(t, nil, s.request(4000), nil); strings.Contains(res.Block, "investigated npm:left-pad") {
		t.Errorf("the block says\n%s", res.Block)
	}
}
