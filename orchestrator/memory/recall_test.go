package memory

import (
	"slices"
	"testing"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
)

// The best card for each part of the situation comes before the second of any,
// and none twice.
func TestInterleaveAnswers(t *testing.T) {
	answer := func(ids ...string) (hits []recalled.Hit) {
		for _, id := range ids {
			hits = append(hits, recalled.Hit{Card: &card.Card{ID: id}})
		}
		return hits
	}
	for _, tt := range []struct {
		answers [][]recalled.Hit
		want    []string
	}{
		{nil, nil},
		{[][]recalled.Hit{answer("a", "b")}, []string{"a", "b"}},
		{[][]recalled.Hit{answer("e1", "both", "e3"), answer("r1", "e1", "both", "r4")}, []string{"e1", "r1", "both", "e3", "r4"}},
		{[][]recalled.Hit{nil, answer("r1")}, []string{"r1"}},
	} {
		var got []string
		for _, h := range interleave(tt.answers) {
			got = append(got, h.Card.ID)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("got %v, want %v", got, tt.want)
		}
	}
}
