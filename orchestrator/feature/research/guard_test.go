package research_test

import (
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/research"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool/shell"
)

// TestResearchFirst: a call about a package that was not looked up is refused until it was.
func TestResearchFirst(t *testing.T) {
	call := op.Call{ID: "c1", Name: "Bash", Args: `{"command":"npm install left-pad"}`}
	tools := gatetest.Tools(t, shell.Bash(), research.Tool(nil))
	for _, off := range []bool{false, true} {
		place := gatetest.Place(t, op.TaskOpened{NoResearch: off}, call)
		g := research.New(place, tools, nil)
		refusal, err := g.Check(t.Context(), gatetest.Call(t, tools, call))
		if err != nil || (refusal == nil) != off {
			t.Fatalf("NoResearch %v: refused by %v, %v", off, refusal, err)
		}
		if off {
			continue
		}
		d, res := refusal[0].(*op.ApprovalDecided), refusal[1].(*op.ToolReturned)
		if d.By != state.ByResearchGuard || len(d.Subjects) != 1 || !strings.Contains(res.Text, "research first") {
			t.Fatalf("refused by %q about %q: %s", d.By, d.Subjects, res.Text)
		}
		if err := place.Record(t.Context(), &op.ResearchDone{Subject: d.Subjects[0]}); err != nil {
			t.Fatal(err)
		}
		c := gatetest.Call(t, tools, call)
		if refusal, err = g.Check(t.Context(), c); refusal != nil || err != nil || len(c.Record) != 1 {
			t.Errorf("after the research: refused by %v, %v; recorded %+v", refusal, err, c.Record)
		}
	}
}
