package memorybench

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"anamnesis/orchestrator/guard"
)

func TestMain(m *testing.M) {
	guard.SuperviseMain()
	CommandMain()
	os.Exit(m.Run())
}

// TestSameSeedSameReport runs the bench twice: the same seed gives the same
// report, byte for byte, in text and in JSON, whatever the workers do.
func TestSameSeedSameReport(t *testing.T) {
	o := Options{Seed: 7, Tasks: 2, Only: []string{PartRepair}}
	var texts [2]bytes.Buffer
	var jsons [2][]byte
	for i := range texts {
		o.Workers = 1 + i*3
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.WriteText(&texts[i]); err != nil {
			t.Fatal(err)
		}
		if jsons[i], err = json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	}
	if texts[0].String() != texts[1].String() || !bytes.Equal(jsons[0], jsons[1]) {
		t.Errorf("two runs of one seed differ:\n%s\n%s", &texts[0], &texts[1])
	}
}

// TestCompletePath plays tasks with real processes and a real disk: the fast
// path gives the same figures.
func TestCompletePath(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Options{Seed: 7, Only: []string{PartCompletely}, Program: program})
	if err != nil {
		t.Fatal(err)
	}
	if r.Complete == nil || r.Complete.Played == 0 {
		t.Fatal("nothing was played")
	}
	for _, d := range r.Complete.Differ {
		t.Error(d)
	}
}
