package retrieval

import (
	"compress/gzip"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEvalSmallSet(t *testing.T) {
	res, err := Eval(t.Context(), "testdata/small", nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Docs != 24 || res.Queries != 26 || res.Recall < 0.99 || res.NDCG < 0.95 || res.NDCG > 1 {
		t.Errorf("%+v", res)
	}
	if res.P50 > res.P99 || res.Build <= 0 {
		t.Errorf("times: %+v", res)
	}
	// The same gzipped, with BEIR's heading and folder, gives the same.
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "qrels"), 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"corpus.jsonl": "corpus.jsonl.gz", "queries.jsonl": "queries.jsonl.gz", "qrels.tsv": "qrels/test.tsv.gz"} {
		b, err := os.ReadFile(filepath.Join("testdata/small", from))
		if err != nil {
			t.Fatal(err)
		}
		if from == "qrels.tsv" {
			b = append([]byte("query-id\tcorpus-id\tscore\n"), b...)
		}
		f, err := os.Create(filepath.Join(dir, to))
		if err != nil {
			t.Fatal(err)
		}
		z := gzip.NewWriter(f)
		if _, err := z.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(z.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	zipped, err := Eval(t.Context(), dir, nil)
	if err != nil || zipped.NDCG != res.NDCG || zipped.Recall != res.Recall || zipped.Queries != res.Queries {
		t.Errorf("gzipped: %+v, %v", zipped, err)
	}
}

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
		ndcg, recall := Grade(tt.found, tt.grades)
		if math.Abs(ndcg-tt.ndcg) > 1e-12 || recall != tt.recall {
			t.Errorf("%v: %g %g, want %g %g", tt.grades, ndcg, recall, tt.ndcg, tt.recall)
		}
	}
}

func TestEvalBadInput(t *testing.T) {
	const corpus, queries, qrels = `{"_id":"a","text":"x"}` + "\n", `{"_id":"q","text":"x"}` + "\n", "q\ta\t1\n"
	for _, tt := range []struct{ name, corpus, queries, qrels, want string }{
		{"missing", "-", queries, qrels, "corpus.jsonl"},
		{"empty", "", queries, qrels, "no records"},
		{"bad JSON", corpus + "{", queries, qrels, "corpus.jsonl:2"},
		{"same id", corpus + corpus, queries, qrels, "corpus.jsonl:2"},
		{"no id", `{"text":"x"}`, queries, qrels, "corpus.jsonl:1"},
		{"columns", corpus, queries, qrels + "q a 1\n", "qrels.tsv:2"},
		{"grade", corpus, queries, qrels + "q\ta\thigh\n", "qrels.tsv:2"},
		{"no labels", corpus, queries, "other\ta\t1\n", "no query has"},
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
		_, err := Eval(t.Context(), dir, nil)
		var ee *EvalError
		if !errors.As(err, &ee) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want …%s…", tt.name, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Eval(ctx, "testdata/small", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
