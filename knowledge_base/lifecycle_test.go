package knowledgebase

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestVerifiedAtIsAPersons: the program may keep the date of a verification and sets none; a review by
// a person is dated.
func TestVerifiedAtIsAPersons(t *testing.T) {
	one, two := time.Unix(1, 0).UTC(), time.Unix(2, 0).UTC()
	again := one.In(time.FixedZone("x", 3600))
	for _, tt := range []struct {
		was, is *time.Time
		refused bool
	}{
		{nil, nil, false}, {nil, &one, true}, {&one, &one, false}, {&one, &again, false}, {&one, &two, true},
		{&one, nil, false},
	} {
		old, c := newCard("k1", "one", "first"), newCard("k1", "one", "first")
		old.VerifiedAt, c.VerifiedAt = tt.was, tt.is
		if err := verify(c, old, &Change{By: Program}, two); (err != nil) != tt.refused {
			t.Errorf("from %v to %v: %v", tt.was, tt.is, err)
		}
		old.State, c.State = card.Draft, card.Reviewed
		if err := verify(c, old, &Change{By: Person}, two); err != nil ||
			!tt.refused && tt.is == tt.was && (c.VerifiedAt == nil || !c.VerifiedAt.Equal(two)) {
			t.Errorf("a review, from %v to %v: %v, %v", tt.was, tt.is, c.VerifiedAt, err)
		}
	}
}
