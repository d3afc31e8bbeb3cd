package anamnesis

import (
	"fmt"
	"testing"

	"anamnesis/opstream/op"
)

// TestCardRanges: a card names where its evidence stands, and of a path in very
// many stretches from where to where.
func TestCardRanges(t *testing.T) {
	for n, want := range map[int]string{1: "[12-13]", 50: "", 51: "[12-513]"} {
		r := Request{}
		for i := range n {
			r.Ranges = append(r.Ranges, op.Range{First: uint64(12 + 10*i), Last: uint64(13 + 10*i)})
		}
		got := cardRanges(&r)
		if want != "" && fmt.Sprint(got) != want || want == "" && len(got) != n {
			t.Errorf("%d ranges: %v, want %s", n, got, want)
		}
	}
}
