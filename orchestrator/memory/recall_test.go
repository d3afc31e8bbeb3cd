package memory

import (
	"slices"
	"testing"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
)

// The best card for each part of the situation comes before the second of any,
// and none twice.
func TestInterleaveAnswers(t *testing.T) {
	answer := func(ids ...string) (hits []knowledgebase.Hit) {
		for _, id := range ids {
			hits = append(hits, knowledgebase.Hit{Card: &card.Card{ID: id}})
		}
		return hits
	}
	for _, tt := range []struct {
		answers [][]knowledgebase.Hit
		want    []string
	}{
		{nil, nil},
		{[][]knowledgebase.Hit{answer("a", "b")}, []string{"a", "b"}},
		{[][]knowledgebase.Hit{answer("e1", "both", "e3"), answer("r1", "e1", "both", "r4")}, []string{"e1", "r1", "both", "e3", "r4"}},
		{[][]knowledgebase.Hit{nil, answer("r1")}, []string{"r1"}},
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
