package neverstart_test

import (
	"strings"
	"testing"

	"anamnesis/anamnesis/facts"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/neverstart"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/state"
)

// TestCheck: a command of a program that earlier tasks did not find is held once, with what works instead.
func TestCheck(t *testing.T) {
	place := gatetest.Place(t, op.TaskOpened{})
	known := []facts.Fact{{Kind: facts.Missing, Match: "gradle", Seen: 5},
		{Kind: facts.Works, Match: "make test", Seen: 5}}
	g := neverstart.New(place, func() []facts.Fact { return known })
	check := func(name, args string) []op.Body {
		t.Helper()
		got, err := g.Check(t.Context(), &gate.Call{Call: op.Call{ID: "c", Name: name, Args: args}})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, args := range []string{`{"command":"make test"}`, `{"command":""}`, `{}`} {
		if got := check("Bash", args); got != nil {
			t.Errorf("%s is held: %v", args, got)
		}
	}
	if got := check("ReadFile", `{"command":"gradle test"}`); got != nil {
		t.Errorf("another tool is held: %v", got)
	}
	got := check("Bash", `{"command":"gradle test"}`)
	if len(got) != 2 {
		t.Fatalf("held: %v", got)
	}
	d, r := got[0].(*op.ApprovalDecided), got[1].(*op.ToolReturned)
	if d.By != state.ByNeverStarts || d.Subjects[0] != "missing:gradle" || !r.Refused ||
		!strings.Contains(r.Text, "make test") {
		t.Errorf("held: %+v, %+v", d, r)
	}
	if err := place.Record(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if got := check("Bash", `{"command":"gradle build"}`); got != nil {
		t.Errorf("held a second time: %v", got)
	}
}
