package review

import (
	"slices"
	"strings"
	"testing"
	"time"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/usage"
)

func store(t *testing.T, cards ...*card.Card) *knowledgebase.Store {
	t.Helper()
	s, err := knowledgebase.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, c := range cards {
		if _, _, err := s.Put(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func draft(id, issue string) *card.Card {
	return &card.Card{
		ID: id, Topic: "topic of " + id, SourceTask: "t", Created: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
		Issue: []string{issue},
	}
}

// TestWaitingOrder: what several tasks learned is reviewed before what is older.
func TestWaitingOrder(t *testing.T) {
	s := store(t, draft("k1", "one"), draft("k2", "two"), draft("k3", "three"))
	if err := s.Count(usage.Event{Card: "k3", Task: "t2", What: usage.Rediscovered}, usage.Event{Card: "k2", Task: "t2", What: usage.Shown}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range Waiting(s) {
		got = append(got, e.ID)
	}
	if got[0] != "k3" {
		t.Errorf("waiting %v, want k3 first", got)
	}
}

// TestQueue: what contradicts a card, or resembles it, stands with it, whichever of them is read.
func TestQueue(t *testing.T) {
	said, told := draft("k1", "sqlite locks with two writers: set busy_timeout and retry the write"), draft("k2",
		"sqlite locks with two writers: set busy_timeout and retry a write")
	said.Contradicts = []string{"k2"}
	guessed, other := draft("k3", "the mirror upload fails at once behind the proxy: retry the upload"), draft("k4",
		"the mirror upload fails at once behind the proxy: never retry the upload")
	s := store(t, said, told, guessed, other)
	items, more, err := Queue(t.Context(), s, 3)
	if err != nil || len(items) != 3 || more != 1 {
		t.Fatal(items, more, err)
	}
	if items, _, err = Queue(t.Context(), s, 10); err != nil || len(items) != 4 {
		t.Fatal(items, err)
	}
	for _, it := range items {
		want := map[string]string{
			"k1": "contradicts k2 ", "k2": "contradicts k1 ", "k3": "may say the same as, or the opposite of, k4 ",
			"k4": "may say the same as, or the opposite of, k3 ",
		}[it.ID]
		if notes := strings.Join(it.Notes, "\n"); !strings.HasPrefix(notes, want) ||
			strings.Contains(notes, "contradicts") && strings.Contains(notes, "may say") || it.State != card.Draft {
			t.Errorf("%s:\n%s\nwant %q", it.ID, notes, want)
		}
	}
}

// TestWaiting: drafts wait for a user, and of reviewed cards those past their date or contradicted by several tasks.
func TestWaiting(t *testing.T) {
	var cards []*card.Card
	past := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	for _, id := range []string{"draft", "expired-draft", "reviewed", "expired", "doubted", "doubted-once", "retired", "expired-retired"} {
		c := draft(id, "issue of "+id)
		switch {
		case strings.Contains(id, "retired"):
			c.State = card.Retired
		case !strings.Contains(id, "draft"):
			c.State = card.Reviewed
		}
		if strings.HasPrefix(id, "expired") {
			c.Expires = &past
		}
		cards = append(cards, c)
	}
	s := store(t)
	if _, err := s.Apply(t.Context(), knowledgebase.Change{By: knowledgebase.Person, Cards: cards}); err != nil {
		t.Fatal(err)
	}
	for task, id := range map[string]string{"t1": "doubted", "t2": "doubted", "t3": "doubted-once", "t4": "doubted", "t5": "doubted"} {
		if err := s.Count(usage.Event{Card: id, Task: task, What: usage.Contradicted}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, e := range Waiting(s) {
		got = append(got, e.ID)
	}
	slices.Sort(got)
	if want := []string{"doubted", "draft", "expired", "expired-draft"}; !slices.Equal(got, want) {
		t.Errorf("waiting %q, want %q", got, want)
	}
}
