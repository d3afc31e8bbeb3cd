package knowledgebase

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/durable"
)

// Four times as many cards are about four times the work of opening a folder, adding a card and searching, also where
// every file claims a review that is not recorded here, as after a copy of a folder. Work is counted as allocations:
// reading the history once for each card made them grow with the square.
func TestWorkGrowsWithCards(t *testing.T) {
	work := func(n int) (allocs float64) {
		dir := t.TempDir()
		month := filepath.Join(dir, "2026-01")
		if err := os.MkdirAll(month, durable.DirMode); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			c := newCard(fmt.Sprintf("k%04d", i), fmt.Sprintf("topic %d", i), "text", "more text")
			c.State, c.Created = card.Reviewed, day
			if err := os.WriteFile(filepath.Join(month, fmt.Sprintf("topic-%d-%s.md", i, c.ID)), c.Markdown(), durable.FileMode); err != nil {
				t.Fatal(err)
			}
		}
		first, err := Open(dir, &Options{Now: fixedNow})
		if err != nil {
			t.Fatal(err)
		}
		mustPut(t, first, newCard("first", "begins the history", "text"))
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		turn := 0
		return testing.AllocsPerRun(1, func() {
			turn++
			s, err := Open(dir, &Options{Now: fixedNow})
			if err != nil {
				t.Fatal(err)
			}
			if s.unrecorded != n {
				t.Fatalf("%d cards claim a review, want %d", s.unrecorded, n)
			}
			mustPut(t, s, newCard(fmt.Sprintf("new%d", turn), fmt.Sprintf("new topic %d", turn), "text"))
			if hits, err := s.Search(t.Context(), Query{Text: "topic 7", K: 3, MinEvidence: -1}); err != nil ||
				len(hits) == 0 {
				t.Fatalf("%d hits, %v", len(hits), err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := work(100), work(400); many > 5*few {
		t.Errorf("%.0f allocations for 100 cards and %.0f for 400, want at most 5 times as many", few, many)
	}
}
