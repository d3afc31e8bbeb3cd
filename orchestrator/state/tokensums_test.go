package state

import (
	"testing"

	"pgregory.net/rapid"
)

// TestTokenSums: sums of counts, beside a plain list of them.
func TestTokenSums(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var sums tokenSums
		list := []uint64{0}
		for i, tok := range rapid.SliceOfN(rapid.Uint64Range(0, 1<<40), 0, 100).Draw(rt, "counts") {
			sums.add(tok)
			list = append(list, list[i]+tok)
		}
		for n, want := range list {
			if got := sums.upTo(uint64(n)); got != want {
				rt.Fatalf("of %d counts: %d, want %d", n, got, want)
			}
		}
	})
}
