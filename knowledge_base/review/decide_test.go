package review

import (
	"errors"
	"testing"
	"time"

	"anamnesis/knowledge_base/card"
)

func day() time.Time { return time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC) }

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
			c := draft("k1", "x")
			c.State = from
			err := turn(c, act, day())
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
	if turn(draft("k1", "x"), "burn", day()) == nil {
		t.Error("an unknown act was carried out")
	}
}

// A decision about several cards is one commit, or nothing at all.
func TestDecideIsWhole(t *testing.T) {
	s := store(t, draft("k1", "first"), draft("k2", "second"))
	if _, err := Decide(t.Context(), s, Decision{Act: Retire, IDs: []string{"k2"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Decide(t.Context(), s, Decision{Act: Approve, IDs: []string{"k1", "k2"}}); err == nil {
		t.Fatal("a retired card was approved")
	}
	if c, err := s.Get("k1"); err != nil || c.State != card.Draft {
		t.Errorf("%v, %v", c.State, err)
	}
	if _, err := Decide(t.Context(), s, Decision{Act: Supersede, IDs: []string{"k1"}, By: "k2"}); err == nil {
		t.Error("a retired card took another's place")
	}
	revs, err := s.History(t.Context(), "k2")
	if err != nil || len(revs) != 2 || revs[0].Message != "Retire: topic of k2" {
		t.Errorf("the history is %+v, %v", revs, err)
	}
	if _, err := Decide(t.Context(), s, Decision{Act: Approve}); err == nil {
		t.Error("a decision about nothing")
	}
}

// TestMessage: the history says what was decided about which cards, and why.
func TestMessage(t *testing.T) {
	s := store(t, draft("k1", "first"), draft("k2", "second"))
	for _, tt := range []struct {
		d    Decision
		want string
	}{
		{Decision{Act: Approve, IDs: []string{"k1"}}, "Approve: topic of k1"},
		{Decision{Act: Retire, IDs: []string{"k1"}, Reason: "it is\nold"}, "Retire: topic of k1\n\nit is old"},
		{Decision{Act: Reject, IDs: []string{"k1", "k2"}}, "Reject 2 cards\n\n- topic of k1\n- topic of k2"},
		{Decision{Act: Supersede, IDs: []string{"k1"}, By: "k2", Reason: "better"}, "Supersede: topic of k1\n\nIts place takes: topic of k2\n\nbetter"},
	} {
		if got := tt.d.message(s); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
