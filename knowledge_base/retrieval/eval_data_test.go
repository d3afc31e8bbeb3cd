package retrieval

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var nightly = flag.Bool("nightly", false, "measure the large set under the race detector, too")

// benchData finds the public retrieval sets, which are not part of the
// repository.
func benchData(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("ANAMNESIS_BENCH_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	dir = filepath.Join(dir, "retrieval")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatalf("CI must have the evaluation data: %v", err)
		}
		t.Skipf("SKIPPED: no evaluation data at %s; set ANAMNESIS_BENCH_DATA", dir)
	}
	return dir
}

// TestEvalBars holds the ranking to what was promised on public data. Under
// the race detector the large set is for -nightly: rankings are the same in
// every build.
func TestEvalBars(t *testing.T) {
	data := benchData(t)
	for _, tt := range []struct {
		set   string
		bar   float64
		large bool
	}{
		{"clippy-messages", .875, false},
		{"cosqa", .395, true},
	} {
		if tt.large && raceBuild && !*nightly {
			t.Logf("%s: NOT MEASURED under -race; run without it, or with -nightly", tt.set)
			continue
		}
		res, err := Eval(t.Context(), filepath.Join(data, tt.set), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %+v", tt.set, res)
		if res.NDCG < tt.bar {
			t.Errorf("%s: nDCG@10 %.4f, want at least %.3f", tt.set, res.NDCG, tt.bar)
		}
	}
}
