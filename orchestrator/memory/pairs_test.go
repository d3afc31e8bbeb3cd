package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/orchestrator/taskdir"
)

// TestPairsWaiting: the pairs of all tasks wait for a user, the newest first, each once and as it was
// recorded last, until the knowledge base holds its card. Lines of earlier versions are read, and lines
// that are damaged are left out.
func TestPairsWaiting(t *testing.T) {
	home := taskdir.Home{State: t.TempDir()}
	pair := func(id, topic string, day int) *card.Card {
		return &card.Card{ID: id, Topic: topic, SourceTask: "t", State: card.Draft,
			Created: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC),
			Issue:   []string{"`make` failed: no rule"}, Solution: []string{"Changed: `Makefile`"}}
	}
	for _, task := range []string{"one", "two"} {
		if err := os.MkdirAll(home.Task(task), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	old := `{"card":{"id":"old","topic":"old","created":"2026-01-03T00:00:00Z"},"pair":{"Run":"two","Changes":[{"Path":"a"}]},"failed":7}` + "\n{\"card\":{\"id\":\"torn\n"
	if err := os.WriteFile(filepath.Join(home.Task("two"), pairsFile), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*card.Card{pair("a", "first", 1), pair("b", "kept", 2), pair("a", "again", 1)} {
		if err := RecordPairs(home, "one", []*card.Card{p}); err != nil {
			t.Fatal(err)
		}
	}
	store, err := knowledgebase.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	waiting := func() (out []string) {
		for _, c := range PairsWaiting(home, store) {
			out = append(out, c.ID+" "+c.Topic)
		}
		return out
	}
	if got := fmt.Sprint(waiting()); got != "[old old b kept a again]" {
		t.Errorf("%s wait", got)
	}
	if _, _, err := store.Put(t.Context(), pair("b", "kept", 2)); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(waiting()); got != "[old old a again]" {
		t.Errorf("%s wait beside a card", got)
	}
}
