package knowledgebase

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"anamnesis/knowledge_base/card"
)

// turn has the user bring a card to a state.
func turn(t testing.TB, s *Store, id string, state card.State) {
	t.Helper()
	c, err := s.Get(id)
	if err != nil {
		t.Fatal(err)
	}
	c.State = state
	if _, err := s.Apply(t.Context(), Change{By: Person, Cards: []*card.Card{c}}); err != nil {
		t.Fatal(err)
	}
}

// An edit over a text that is not the one it began with is refused, also for
// a card that this store did not see change.
func TestEditIsOverWhatWasSeen(t *testing.T) {
	dir := t.TempDir()
	s, other := personStore(t, dir), personStore(t, dir)
	mustPut(t, s, newCard("k1", "one", "first"))
	text, print, err := s.Text("k1")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	turn(t, other, "k1", card.Reviewed)
	mine := []byte(strings.Replace(string(text), "first", "mine", 1))
	var conflict *ConflictError
	if _, err := s.Edit(t.Context(), "k1", print, mine); !errors.As(err, &conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	if err := s.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, print, err = s.Text("k1")
	if err != nil || !strings.Contains(string(text), "verified_at") {
		t.Fatalf("%s, %v", text, err)
	}
	mine = []byte(strings.Replace(string(text), "first", "mine", 1))
	if _, err := s.Edit(t.Context(), "k1", print, mine); err != nil {
		t.Fatal(err)
	}
	if now, _, err := s.Text("k1"); err != nil || !slices.Equal(now, mine) {
		t.Errorf("%s, %v", now, err)
	}
}
