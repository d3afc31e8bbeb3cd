package retrieval

import (
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
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
