package reflect

import (
	"fmt"
	"slices"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/state/steps"
)

// TestLeftPaths: each path that was left is named once, by its first step; not one to which the task returned.
func TestLeftPaths(t *testing.T) {
	type step struct {
		parent int
		left   string
	}
	for name, tt := range map[string]struct {
		list    []step
		current int
		want    []string
	}{
		"none":          {[]step{{}, {0, ""}}, 1, nil},
		"one":           {[]step{{}, {0, "a"}, {1, "a"}, {0, ""}}, 3, []string{"from step 1 on: a"}},
		"two":           {[]step{{}, {0, "a"}, {1, "a"}, {0, "b"}, {0, ""}}, 4, []string{"from step 1 on: a", "from step 3 on: b"}},
		"one of a path": {[]step{{}, {0, ""}, {1, "a"}, {1, ""}}, 3, []string{"from step 2 on: a"}},
		"beneath other": {[]step{{}, {0, "a"}, {1, "b"}, {0, ""}}, 3, []string{"from step 1 on: a", "from step 2 on: b"}},
		"returned to":   {[]step{{}, {0, "a"}, {1, "a"}, {0, "b"}}, 2, []string{"from step 3 on: b"}},
	} {
		st := &state.State{Current: tt.current}
		for id, s := range tt.list {
			st.Steps.Add(steps.Step{ID: id, Parent: s.parent, LeftBy: s.left, Ended: true})
		}
		if got := leftPaths(st); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestChecksShown: the newest runs of the checks are shown, oldest first.
func TestChecksShown(t *testing.T) {
	for _, n := range []int{1, maxChecks, maxChecks + 2} {
		st := new(state.State)
		st.Goal.Until = []string{"make", "make test"}
		for i := range n {
			st.Goal.Runs = append(st.Goal.Runs, state.GoalRun{Step: i, Seq: uint64(10 * i), Rating: op.Rating{Of: 3}})
		}
		got := checks(st)
		first := max(0, n-maxChecks)
		if len(got) != 2+min(n, maxChecks) || got[0] != "the check: make, then make test" ||
			got[2] != fmt.Sprintf("step %d (op %d): %s", first, 10*first, op.Rating{Of: 3}) {
			t.Errorf("%d runs: %q", n, got)
		}
	}
}
