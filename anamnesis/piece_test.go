package anamnesis

import "testing"

// TestWeight: what a user said and what earlier notes hold comes before failures, these before what the
// agent said, and what only looked comes last.
func TestWeight(t *testing.T) {
	two := 2
	bash := func(change func(r *record)) *record {
		r := &record{kind: recCall, tool: "Bash", args: `{"command":"make"}`}
		change(r)
		return r
	}
	ranks := [][]*record{
		{{kind: recSaid}},
		{{kind: recBlock}},
		{bash(func(r *record) { r.exit = &two }), bash(func(r *record) { r.isError, r.writes = true, []string{"a"} })},
		{bash(func(r *record) { r.unknown, r.isError = true, true }), bash(func(r *record) { r.refused = true })},
		{{kind: recReply}, {kind: recLeft}},
		{{kind: recFault}, bash(func(r *record) { r.writes = []string{"a"} }), {kind: recCall, tool: "WriteFile", writes: []string{"a"}}},
		{bash(func(*record) {}), bash(func(r *record) { r.exit = new(int) })},
		{{kind: recCall, tool: "ReadFile", reads: []string{"a"}}, {kind: recNote}, {kind: recNote, writes: []string{"a"}}, {kind: recNote, tool: "Bash"}},
	}
	before := 10
	for i, rank := range ranks {
		first := rank[0].weight()
		if first >= before {
			t.Errorf("rank %d weighs %d, the one before it %d", i, first, before)
		}
		before = first
		for k, r := range rank {
			if got := r.weight(); got != first {
				t.Errorf("rank %d: record %d weighs %d, the first %d", i, k, got, first)
			}
		}
	}
}

// TestSupports: every quotation that is long enough to mean something occurs in the record.
func TestSupports(t *testing.T) {
	e := &evidence{text: "no rule to make lex.c"}
	for text, want := range map[string]bool{
		"": true, "no quotation": true, "`no rule`": true, "`no  rule`": true, "\"lex.c\" and `make`": true,
		"`xy`": true, "`xyz`": false, "`äöü`": false, "`äö`": true, "`no rule` and `xyz`": false,
	} {
		if got := e.supports(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
