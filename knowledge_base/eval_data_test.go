package knowledgebase

import (
	"os"
	"path/filepath"
	"testing"
)

// benchData finds the public retrieval sets, which are not part of the
// repository.
func benchData(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("ANAMNESIS_BENCH_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "data")
	}
	dir = filepath.Join(dir, "retrieval")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("SKIPPED: no evaluation data at %s; set ANAMNESIS_BENCH_DATA", dir)
	}
	return dir
}

// TestEvalBars holds the ranking to what was promised on public data.
func TestEvalBars(t *testing.T) {
	data := benchData(t)
	for set, bar := range map[string]float64{"clippy-messages": .875, "cosqa": .395} {
		res, err := Eval(t.Context(), filepath.Join(data, set), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %+v", set, res)
		if res.NDCG < bar {
			t.Errorf("%s: nDCG@10 %.4f, want at least %.3f", set, res.NDCG, bar)
		}
	}
}
