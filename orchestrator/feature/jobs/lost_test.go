package jobs_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/jobs"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/workspace"
)

func record(t *testing.T, p *workspace.Place, bodies ...op.Body) {
	t.Helper()
	if err := p.Record(t.Context(), bodies...); err != nil {
		t.Fatal(err)
	}
}

// TestLostJobs: background commands of an earlier process are over. Those that a jump leaves
// are ended without a notice, because the jump names them.
func TestLostJobs(t *testing.T) {
	started := func(id string) *op.JobStarted {
		return &op.JobStarted{Job: id, Call: "c1", Command: "sleep 1000", PID: 1 << 30, BootID: "another boot"}
	}
	p := gatetest.Place(t, op.TaskOpened{})
	record(t, p, started("bg_1"), started("bg_2"))
	l := jobs.New(p.Ledger)
	step := p.State().Jobs.Running[0].Step
	if names, err := l.EndOf(t.Context(), []int{step + 1}); err != nil || len(names) != 0 ||
		len(p.State().Jobs.Running) != 2 {
		t.Fatalf("of another step: ended %q, %v", names, err)
	}
	if err := errors.Join(l.CloseLost(t.Context()), p.ApplyQueued()); err != nil {
		t.Fatal(err)
	}
	if len(p.State().Jobs.Running) != 0 {
		t.Errorf("still running: %+v", p.State().Jobs.Running)
	}
	text := ""
	for _, m := range p.State().Context.Chat() {
		text += m.Text
	}
	for _, id := range []string{"bg_1", "bg_2"} {
		if n := strings.Count(text, "[background] "+id+" (sleep 1000) was ended when the program stopped."); n != 1 {
			t.Errorf("the model is told %d times of %s:\n%s", n, id, text)
		}
	}

	p = gatetest.Place(t, op.TaskOpened{})
	record(t, p, started("bg_1"))
	names, err := jobs.New(p.Ledger).EndOf(t.Context(), []int{p.State().Jobs.Running[0].Step})
	if err != nil || !slices.Equal(names, []string{"bg_1 (sleep 1000)"}) || len(p.State().Jobs.Running) != 0 {
		t.Errorf("a jump ended %q, %v; running: %+v", names, err, p.State().Jobs.Running)
	}
}
