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
	h := sha256.New()
	for _, name := range []string{"corpus.jsonl", "queries.jsonl", "qrels.tsv", "unrelated.txt"} {
		b, err := os.ReadFile(filepath.Join("testdata", "cards", name))
		if err != nil {
			t.Fatal(err)
		}
		h.Write(b)
	}
	const want = "bb710768e74c8690a70c4650e937e12a7855f85dcce9d21179193a24c70cd2d2"
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("the set was edited: %s; a better set is a new folder beside it", got)
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
