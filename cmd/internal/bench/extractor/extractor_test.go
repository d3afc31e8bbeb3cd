package extractor

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
)

// TestExtractorOnRecordedRuns checks the extractor against its bar on the public
// recordings.
func TestExtractorOnRecordedRuns(t *testing.T) {
	data := cmp.Or(os.Getenv("ANAMNESIS_BENCH_DATA"), filepath.Join("..", "..", "..", "..", "..", "shared", "data"))
	if _, err := os.Stat(filepath.Join(data, "transcripts", tauFile)); err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatalf("CI must have the recorded runs: %v", err)
		}
		t.Skipf("SKIPPED: no recorded runs (%v); set ANAMNESIS_BENCH_DATA to the folder that holds transcripts", err)
	}
	r, err := Run(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 9 || r.Failed == 0 {
		t.Fatalf("%d rows, %d failed calls", len(r.Rows), r.Failed)
	}
	for _, x := range r.Rows {
		switch {
		case x.TrueQuotes != x.Quotes:
			t.Errorf("%s, EAS %d: %d of %d quoted errors occur in the span", x.Name, x.EAS, x.TrueQuotes, x.Quotes)
		case x.OverCap > 0:
			t.Errorf("%s, EAS %d: %d blocks over the cap", x.Name, x.EAS, x.OverCap)
		case x.Failed == 0 || float64(x.Cited) < 0.95*float64(x.Failed):
			t.Errorf("%s, EAS %d: %d of %d failed calls are in the block or its lists", x.Name, x.EAS, x.Cited, x.Failed)
		}
	}
}
