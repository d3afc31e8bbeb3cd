package retrieval

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGrade(t *testing.T) {
	list := func(ids ...string) []string { return ids }
	for _, tt := range []struct {
		found        []string
		grades       map[string]int
		ndcg, recall float64
	}{
		{list("a"), map[string]int{"a": 1}, 1, 1},
		{list("x", "a"), map[string]int{"a": 1}, 1 / math.Log2(3), 1},
		{list("a", "b"), map[string]int{"a": 1, "b": 2}, (1 + 2/math.Log2(3)) / (2 + 1/math.Log2(3)), 1},
		{list("x"), map[string]int{"a": 1, "b": 1}, 0, 0},
		{list("a"), map[string]int{"a": 1, "b": 1}, 1 / (1 + 1/math.Log2(3)), 0.5},
		{list("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a"), map[string]int{"a": 1}, 0, 0},
	} {
		ndcg, recall := grade(tt.found, tt.grades)
		if math.Abs(ndcg-tt.ndcg) > 1e-12 || recall != tt.recall {
			t.Errorf("%v: %g %g, want %g %g", tt.grades, ndcg, recall, tt.ndcg, tt.recall)
		}
	}
}

func TestEvalSetBadInput(t *testing.T) {
	const corpus, queries, qrels = `{"_id":"a","text":"x"}` + "\n", `{"_id":"q","text":"x"}` + "\n", "q\ta\t1\n"
	for _, tt := range []struct{ name, corpus, queries, qrels, want string }{
		{"missing", "-", queries, qrels, "corpus.jsonl"},
		{"empty", "", queries, qrels, "no records"},
		{"bad JSON", corpus + "{", queries, qrels, "corpus.jsonl:2"},
		{"same id", corpus + corpus, queries, qrels, "corpus.jsonl:2"},
		{"no id", `{"text":"x"}`, queries, qrels, "corpus.jsonl:1"},
		{"columns", corpus, queries, qrels + "q a 1\n", "qrels.tsv:2"},
		{"grade", corpus, queries, qrels + "q\ta\thigh\n", "qrels.tsv:2"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"corpus.jsonl": tt.corpus, "queries.jsonl": tt.queries, "qrels.tsv": tt.qrels} {
			if text == "-" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := readSet(dir)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want …%s…", tt.name, err, tt.want)
		}
	}
}
