package retrieval

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

// The project's own set was written before anything was measured on it, and
// stays as it is.
func TestCardsSetIsFrozen(t *testing.T) {
	for _, frozen := range []struct {
		dir, want string
		files     []string
	}{
		{"cards", "bb710768e74c8690a70c4650e937e12a7855f85dcce9d21179193a24c70cd2d2", []string{"corpus.jsonl", "queries.jsonl", "qrels.tsv", "unrelated.txt"}},
		{"groups", "3ee12f67d4edac6bff6e219739f31bb7ef8370c92d66e60e84a7542496388e55", []string{"cards.tsv", "unseen/corpus.jsonl", "unseen2/corpus.jsonl"}},
	} {
		h := sha256.New()
		for _, name := range frozen.files {
			b, err := os.ReadFile(filepath.Join("testdata", frozen.dir, name))
			if err != nil {
				t.Fatal(err)
			}
			h.Write(b)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != frozen.want {
			t.Errorf("%s was edited: %s; a better set is a new folder beside it", frozen.dir, got)
		}
	}
}

// TestEvalCards holds the search to what was promised on that set, with
// abstention at work: a card that is not shown is not found.
func TestEvalCards(t *testing.T) {
	res, err := Eval(t.Context(), filepath.Join("testdata", "cards"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", res)
	if res.Docs < 120 || res.Queries < 300 || res.Unrelated < 100 {
		t.Fatalf("the set has shrunk: %d documents, %d queries, %d unrelated", res.Docs, res.Queries, res.Unrelated)
	}
	if res.NDCG < .90 {
		t.Errorf("nDCG@10 %.4f, want at least .90: are function words weighed like the others?", res.NDCG)
	}
	if res.Shown < .90 {
		t.Errorf("recall@5 %.3f, want at least .90", res.Shown)
	}
	if res.Abstained < .90 {
		t.Errorf("abstained from %.2f of what has no answer, want at least .90", res.Abstained)
	}
	english := res.Languages["en"].Shown
	for _, lang := range []string{"zh", "mixed"} {
		m := res.Languages[lang]
		if m.Queries == 0 || m.Shown < english-.03 {
			t.Errorf("%s: recall@5 %.3f of %d queries; English has %.3f", lang, m.Shown, m.Queries, english)
		}
	}
}
