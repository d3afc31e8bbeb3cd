package research_test

import (
	"fmt"
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

// TestCite: the first cited result of a call that only looked is the evidence; without one, the model is told what is
// wrong with each and what it could cite.
func TestCite(t *testing.T) {
	tools := gatetest.Tools(t, shell.Bash(), research.Tool(nil))
	place := gatetest.Place(t, op.TaskOpened{})
	g := research.New(place, tools, nil)
	last := place.State().Last
	if _, err := g.Cite([]uint64{last}); err == nil ||
		!strings.HasSuffix(err.Error(), "There is none yet: look first") {
		t.Errorf("before anything was seen: %v", err)
	}
	for _, command := range []string{"npm view left-pad", "npm install left-pad"} {
		args := `{"command":"` + command + `"}`
		for _, b := range []op.Body{&op.ModelReplied{Calls: []op.Call{{ID: command, Name: "Bash", Args: args}}}, &op.ToolCalled{Call: command, Name: "Bash", Args: args},
			&op.ToolReturned{Call: command, Name: "Bash", Exit: new(int)}, &op.WorldSaved{}, &op.ModelAsked{}} {
			if err := place.Record(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	looked, installed, now := last+3, last+8, place.State().Last
	for _, tt := range []struct {
		cites []uint64
		want  uint64
		err   string
	}{
		{[]uint64{looked}, looked, ""}, {[]uint64{installed, looked}, looked, ""}, {[]uint64{0, looked, installed}, looked, ""},
		{[]uint64{0}, 0, "op 0 does not exist"}, {[]uint64{now + 1}, 0, fmt.Sprintf("op %d does not exist", now+1)}, {[]uint64{now}, 0, fmt.Sprintf("op %d is a model.asked and no result", now)},
		{[]uint64{installed}, 0, fmt.Sprintf("op %d (Bash) may have done more than look. You can cite op %d (Bash(npm view left-pad))", installed, looked)},
		{[]uint64{1, installed}, 0, fmt.Sprintf("op 1 is a task.opened and no result, op %d (Bash)", installed)}, {nil, 0, "You can cite"},
	} {
		if got, err := g.Cite(tt.cites); got != tt.want || (err == nil) != (tt.err == "") ||
			err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%v: op %d, %v; want op %d, %q", tt.cites, got, err, tt.want, tt.err)
		}
	}

	for _, wanted := range []map[string]bool{nil, {"npm:left-pad": true}} {
		place.State().Research.Wanted = wanted
		for step, want := range map[int]string{1: fmt.Sprintf("\n(to cite: op %d (Bash(npm view left-pad)))", looked), 2: ""} {
			if wanted == nil {
				want = ""
			}
			if g.CiteLine(step) != want {
				t.Errorf("%v wanted, step %d: %q, want %q", wanted, step, g.CiteLine(step), want)
			}
		}
	}
}
