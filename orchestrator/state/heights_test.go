package state

import (
	"slices"
	"testing"

	"anamnesis/opstream/op"
)

// TestHeights: runs are as high as their value between the worst, or no test that passed, and the best that there can
// be.
func TestHeights(t *testing.T) {
	tests := func(passed float64) op.Rating { return op.Rating{Value: passed, Of: 4} }
	score := func(v float64) op.Rating { return op.Rating{Value: v} }
	failed := op.Rating{Error: "no number", Value: 9}
	for name, tt := range map[string]struct {
		runs []op.Rating
		want []float64
	}{
		"none":           {nil, []float64{}},
		"tests":          {[]op.Rating{tests(1), tests(4), tests(0)}, []float64{0.25, 1, 0}},
		"a score":        {[]op.Rating{score(10), score(20), score(15)}, []float64{0, 1, 0.5}},
		"below zero":     {[]op.Rating{score(-4), score(-2)}, []float64{0, 0.5}},
		"with an error":  {[]op.Rating{score(10), failed, score(20)}, []float64{0, 0, 1}},
		"an error first": {[]op.Rating{failed, score(5)}, []float64{0, 1}},
		"no difference":  {[]op.Rating{tests(0), {Of: 0}}, []float64{0, 0}},
		"all alike":      {[]op.Rating{score(3), score(3)}, []float64{0, 0}},
	} {
		g := new(Goal)
		for _, r := range tt.runs {
			g.Runs = append(g.Runs, GoalRun{Rating: r})
		}
		if got := g.Heights(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
