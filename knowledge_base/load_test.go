package knowledgebase

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"anamnesis/opstream/durable"
)

// Opening tells how many files it has read, one call at a time, up to the last;
// broken ones count, and what it reads does not depend on who reads first.
func TestOpenTellsProgress(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	const n = 30
	for i := range n {
		mustPut(t, s, newCard(fmt.Sprintf("k%02d", i), fmt.Sprintf("topic %d", i), "text"))
	}
	if err := os.WriteFile(filepath.Join(dir, "2026-01", "broken-x.md"), []byte("---\nnot: closed\n"), durable.FileMode); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var calls []int
		again, err := Open(dir, &Options{Now: fixedNow, Progress: func(read, of int) {
			if of != n+1 {
				t.Errorf("%d files, want %d", of, n+1)
			}
			calls = append(calls, read)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if len(calls) != n+1 || !slices.IsSorted(calls) || calls[n] != n+1 {
			t.Errorf("calls %v, want 1 to %d", calls, n+1)
		}
		if got := len(again.List()); got != n || len(again.Broken()) != 1 {
			t.Errorf("%d cards and %d broken, want %d and 1", got, len(again.Broken()), n)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
