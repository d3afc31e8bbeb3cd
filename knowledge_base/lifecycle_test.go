package knowledgebase

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"anamnesis/knowledge_base/card"
)

// Which act each state allows, and where it leads.
func TestTurn(t *testing.T) {
	states := []card.State{card.Draft, card.Reviewed, card.Retired, card.Superseded}
	for act, want := range map[Act][4]card.State{
		Approve:   {card.Reviewed, card.Reviewed, "", ""},
		Reject:    {card.Retired, "", "", ""},
		Retire:    {card.Retired, card.Retired, "", ""},
		Supersede: {card.Superseded, card.Superseded, "", ""},
		Restore:   {"", "", card.Draft, card.Draft},
	} {
		for i, from := range states {
			c := newCard("k1", "t", "x")
			c.State = from
			err := turn(c, act, day)
			var no *StateError
			switch {
			case want[i] == "" && (!errors.As(err, &no) || c.State != from):
				t.Errorf("%s %s: %v, now %s; want a *StateError", act, from, err, c.State)
			case want[i] != "" && (err != nil || c.State != want[i]):
				t.Errorf("%s %s: %v, now %s; want %s", act, from, err, c.State, want[i])
			}
			if verified := c.VerifiedAt != nil; verified != (act == Approve && want[i] != "") {
				t.Errorf("%s %s: verified %v", act, from, verified)
			}
		}
	}
	if turn(newCard("k1", "t", "x"), "burn", day) == nil {
		t.Error("an unknown act was carried out")
	}
}

// A decision about several cards is one commit, or nothing at all.
func TestDecideIsWhole(t *testing.T) {
	dir := t.TempDir()
	s := personStore(t, dir)
	mustPut(t, s, newCard("k1", "one", "first"))
	mustPut(t, s, newCard("k2", "two", "second"))
	if _, err := s.Decide(t.Context(), Decision{Act: Retire, IDs: []string{"k2"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Decide(t.Context(), Decision{Act: Approve, IDs: []string{"k1", "k2"}}); err == nil {
		t.Fatal("a retired card was approved")
	}
	if c, err := s.Get("k1"); err != nil || c.State != card.Draft {
		t.Errorf("%v, %v", c.State, err)
	}
	if _, err := s.Decide(t.Context(), Decision{Act: Supersede, IDs: []string{"k1"}, By: "k2"}); err == nil {
		t.Error("a retired card took another's place")
	}
	if got, want := subjects(t, dir)[0], "Ada: Retire: two"; got != want {
		t.Errorf("the history ends with %q, want %q", got, want)
	}
	if _, err := s.Decide(t.Context(), Decision{Act: Approve}); err == nil {
		t.Error("a decision about nothing")
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
	if _, err := other.Decide(t.Context(), Decision{Act: Approve, IDs: []string{"k1"}}); err != nil {
		t.Fatal(err)
	}
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
