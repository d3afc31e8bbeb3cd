package anamnesis

import (
	"fmt"
	"slices"
	"testing"

	"anamnesis/anamnesis/note"
	"anamnesis/knowledge_base/card"
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

// TestPairChanges: a lesson quotes what was run and how files were edited; that a file changed stands there only if
// nothing else does. It is tainted if its words or the pair are.
func TestPairChanges(t *testing.T) {
	for _, tt := range []struct{ solution, want []string }{
		{[]string{"Run before: `a`", "Changed: `b`"}, []string{"Run before: `a`"}},
		{[]string{"Changed: `b`", "Changed: `c`"}, []string{"Changed: `b`", "Changed: `c`"}},
		{[]string{"Run before: `a`", "Run before: `b`", "Run before: `c`", "Run before: `d`"},
			[]string{"Run before: `a`", "Run before: `b`", "Run before: `c`"}},
	} {
		p := Pair{Card: &card.Card{Solution: tt.solution}}
		if got := p.changes(); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q", tt.solution, got)
		}
	}
	for _, draft := range []bool{false, true} {
		for _, pair := range []bool{false, true} {
			of := &card.Card{Issue: []string{"i"}, Solution: []string{"Run before: `a`"}}
			of.Provenance.Tainted = pair
			r := Request{Task: "t",
				Pairs: []Pair{{Card: of, failed: &record{seq: 1, end: 2}, fixed: &record{seq: 3, end: 4}}}}
			made, paired := lessons(&r,
				[]note.Card{{Topic: "t", Ops: []uint64{2, 4}, Issue: []string{"i"}, Tainted: draft}}, nil)
			if len(made) != 1 || !paired[made[0].ID] || made[0].Provenance.Tainted != (draft || pair) {
				t.Errorf("tainted words %v, tainted pair %v: %+v", draft, pair, made)
			}
		}
	}
}
