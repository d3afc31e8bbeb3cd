package runtime

import (
	"testing"
	"time"

	"anamnesis/orchestrator/state"
)

// TestFamilyCost: what subagents at work cost is counted beside the task until
// its own figures hold it.
func TestFamilyCost(t *testing.T) {
	f := newFamily(time.Unix(0, 0))
	f.recordBefore("t.1", state.Used{Tokens: 10, USD: 1})
	f.setUsed("t.1", state.Used{Tokens: 30, USD: 1.5}, nil)
	if got := f.others(state.Used{}); got.USD != 0.5 || got.Tokens != 20 {
		t.Errorf("at work: %+v", got)
	}
	f.setUsed("t", state.Used{Tokens: 20, USD: 0.5}, []state.BegunSubagent{{Task: "t.1"}})
	if got := f.others(state.Used{Tokens: 20, USD: 0.5}); got.USD != 0 || got.Tokens != 0 {
		t.Errorf("ended: %+v", got)
	}
}
