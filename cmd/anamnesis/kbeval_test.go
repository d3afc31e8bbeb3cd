//go:build unix

package main

import (
	"encoding/json"
	"testing"
)

// The bars of the project's own retrieval set, as anybody measures them.
func TestKBEvalOfOwnSet(t *testing.T) {
	out, err := program(t.Context(), nil, "kb", "eval", "--json", "--data", "../../knowledge_base/retrieval/testdata/cards")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got struct {
		Recall    float64 `json:"recall@5"`
		Abstained float64 `json:"abstained"`
		Queries   int     `json:"queries"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Queries < 300 || got.Recall < .90 || got.Abstained < .90 {
		t.Errorf("%+v, want at least 300 queries, .90 found and .90 of the unrelated left unanswered", got)
	}
}
