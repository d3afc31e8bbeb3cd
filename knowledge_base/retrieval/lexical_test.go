package retrieval

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPostings: packed postings hold what a plain list would, in the order of
// entry, whatever slots are taken out and used again.
func TestPostings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type entry struct {
			slot int32
			tf   int
		}
		var p postings
		var want []entry
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			e := entry{rapid.Int32Range(0, 100_000).Draw(t, "slot"), rapid.SampledFrom([]int{1, 1, 2, 127, 128, 70_000}).Draw(t, "tf")}
			n := len(want)
			want = slices.DeleteFunc(want, func(w entry) bool { return w.slot == e.slot })
			p.remove(e.slot)
			if len(want) == n || rapid.Bool().Draw(t, "again") {
				p.enter(e.slot, e.tf)
				want = append(want, e)
			}
		}
		var got []entry
		p.each(func(slot int32, tf int) { got = append(got, entry{slot, tf}) })
		if !slices.Equal(got, want) || int(p.df) != len(want) {
			t.Fatalf("%d of %v, want %v", p.df, got, want)
		}
	})
}
