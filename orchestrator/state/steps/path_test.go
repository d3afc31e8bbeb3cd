package steps

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestDiscarded: in any tree, a jump leaves the steps of the path to where the task is
// that are not on the path to its target.
func TestDiscarded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s Tree
		n := rapid.IntRange(1, 40).Draw(rt, "steps")
		for id := range n {
			s.Add(Step{ID: id, Parent: rapid.IntRange(0, max(id-1, 0)).Draw(rt, "parent"), First: uint64(id + 1), Last: uint64(id + 1), Ended: true})
		}
		from := rapid.IntRange(0, n-1).Draw(rt, "from")
		to := rapid.IntRange(0, n-1).Draw(rt, "to")
		var want []int
		for _, id := range s.Path(from) {
			if !slices.Contains(s.Path(to), id) {
				want = append(want, id)
			}
		}
		if got := s.Discarded(from, to); !slices.Equal(got, want) {
			rt.Fatalf("from step %d to step %d: %v, want %v", from, to, got, want)
		}
		for id, on := range s.PathSet(to) {
			if on != s.OnPath(id, to) {
				rt.Fatalf("step %d on the path to step %d: %v", id, to, on)
			}
		}
	})
}
