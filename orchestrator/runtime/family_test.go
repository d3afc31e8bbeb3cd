package runtime

import (
	"strings"
	"testing"
	"time"

	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// TestFamilyCounts: what each of a family is told the others have used adds up
// to the whole, before and after a subagent's end, and when one continues.
func TestFamilyCounts(t *testing.T) {
	f := newFamily(time.Now())
	f.setUsed("t", state.Used{Tokens: 100, Steps: 2}, nil)
	f.recordBefore("t.1", state.Used{})
	f.setUsed("t.1", state.Used{Tokens: 30, Steps: 1}, nil)
	f.recordBefore("t.2", state.Used{Tokens: 500, Steps: 9}) // it worked before, and that is in the 100
	f.setUsed("t.2", state.Used{Tokens: 505, Steps: 10}, nil)
	check := func(who string, own, want state.Used) {
		t.Helper()
		if got := f.others(own); got != want {
			t.Errorf("%s: the others used %+v, want %+v", who, got, want)
		}
	}
	check("the task", state.Used{Tokens: 100, Steps: 2}, state.Used{Tokens: 35, Steps: 2})
	check("t.1", state.Used{Tokens: 30, Steps: 1}, state.Used{Tokens: 105, Steps: 3})
	check("t.2, which has used more than there is", state.Used{Tokens: 505, Steps: 10}, state.Used{})
	f.setUsed("t", state.Used{Tokens: 130, Steps: 3}, []state.BegunSubagent{{Task: "t.1"}})
	check("the task, with what ended", state.Used{Tokens: 130, Steps: 3}, state.Used{Tokens: 5, Steps: 1})
	if !f.reserve("t.3") || f.reserve("t.3") || !f.atWork("t.3") {
		t.Error("a subagent is taken twice, or not at all")
	}
	if f.release("t.3"); f.atWork("t.3") || !f.reserve("t.3") {
		t.Error("one that has left is still at work")
	}
}

// TestSubagentNames: whatever the parent's name, the subagent's is a task's name
// and another one.
func TestSubagentNames(t *testing.T) {
	for _, parent := range []string{"t", strings.Repeat("a", 80), strings.Repeat("a", 73) + ".bcdefg"} {
		for _, n := range []int{1, maxSubagents} {
			if id := taskdir.SubagentID(parent, n); taskdir.CheckTaskID(id) != nil || id == parent {
				t.Errorf("subagent %d of %s is %s: %v", n, parent, id, taskdir.CheckTaskID(id))
			}
		}
	}
}
