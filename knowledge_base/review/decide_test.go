package review

import (
	"errors"
	"strings"
	"testing"
	"time"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/usage"
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

// decide carries a decision out that must succeed.
func decide(t *testing.T, s *knowledgebase.Store, d Decision) {
	t.Helper()
	if _, err := Decide(t.Context(), s, d); err != nil {
		t.Fatal(err)
	}
}

// TestTaint: an approval removes a taint only where the user says so.
func TestTaint(t *testing.T) {
	for id, tt := range map[string]struct{ tainted, untaint, want bool }{
		"k1": {false, false, false}, "k2": {false, true, false}, "k3": {true, false, true}, "k4": {true, true, false},
	} {
		c := draft(id, "issue")
		c.Provenance.Tainted = tt.tainted
		s := store(t, c)
		if notes := Notes(s, s.List()[0]); (len(notes) > 0) != tt.tainted {
			t.Errorf("%s: notes of the draft %q", id, notes)
		}
		decide(t, s, Decision{Act: Approve, IDs: []string{id}, Untaint: tt.untaint})
		got, err := s.Get(id)
		if err != nil || got.Provenance.Tainted != tt.want {
			t.Errorf("%s: tainted %v, %v", id, got.Provenance.Tainted, err)
		}
		if notes := Notes(s, s.List()[0]); len(notes) > 0 {
			t.Errorf("%s: notes of the reviewed card %q", id, notes)
		}
	}
}

// TestApproveAgain: an approval ends doubts and a date that has passed, not one to come; to retire and restore does
// not.
func TestApproveAgain(t *testing.T) {
	past, future := day(), time.Now().AddDate(100, 0, 0).UTC().Truncate(time.Second)
	for i, expires := range []*time.Time{&past, &future} {
		c := draft("k1", "issue")
		c.State, c.VerifiedAt, c.Expires = card.Reviewed, &past, expires
		s := store(t)
		if _, err := s.Apply(t.Context(), knowledgebase.Change{By: knowledgebase.Person, Cards: []*card.Card{c}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Count(usage.Event{Card: "k1", Task: "t1", What: usage.Contradicted}, usage.Event{Card: "k1", Task: "t2", What: usage.Contradicted},
			usage.Event{Card: "k1", Task: "t3", What: usage.Contradicted}); err != nil {
			t.Fatal(err)
		}
		decide(t, s, Decision{Act: Retire, IDs: []string{"k1"}})
		decide(t, s, Decision{Act: Restore, IDs: []string{"k1"}})
		if !doubted(s.List()[0]) {
			t.Error("to restore a card ended its doubts")
		}
		decide(t, s, Decision{Act: Approve, IDs: []string{"k1"}})
		if e := s.List()[0]; doubted(e) || e.Expired || len(Waiting(s)) > 0 {
			t.Errorf("still waiting: %+v", e)
		}
		if got, err := s.Get("k1"); err != nil || (got.Expires != nil) != (i == 1) {
			t.Errorf("expires %v, %v", got.Expires, err)
		}
	}
}

// TestPlaces: a card takes the place of others, but not its own, and not when it is gone itself; restored ones get
// theirs back.
func TestPlaces(t *testing.T) {
	s := store(t, draft("k1", "one"), draft("k2", "two"), draft("k3", "three"), draft("k4", "four"))
	_, err := Decide(t.Context(), s, Decision{Act: Supersede, IDs: []string{"k2", "k1"}, By: "k1"})
	if err == nil || !strings.Contains(err.Error(), "own place") {
		t.Errorf("its own place: %v", err)
	}
	by := func(id string) string {
		c, err := s.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		return string(c.State) + " " + strings.Join(c.Supersedes, " ")
	}
	decide(t, s, Decision{Act: Supersede, IDs: []string{"k1"}, By: "k2"})
	decide(t, s, Decision{Act: Supersede, IDs: []string{"k3"}, By: "k2"})
	if got := by("k2"); got != "draft k1 k3" {
		t.Errorf("k2 is %q", got)
	}
	var state *StateError
	if _, err := Decide(t.Context(), s, Decision{Act: Supersede, IDs: []string{"k2"}, By: "k1"}); !errors.As(err, &state) || state.ID != "k1" {
		t.Errorf("a superseded card takes a place: %v", err)
	}
	decide(t, s, Decision{Act: Restore, IDs: []string{"k1"}})
	if got := by("k1") + by("k2") + by("k3"); got != "draft draft k3superseded " {
		t.Errorf("restored: %q", got)
	}
	decide(t, s, Decision{Act: Supersede, IDs: []string{"k1"}, By: "k2"})
	decide(t, s, Decision{Act: Retire, IDs: []string{"k2"}})
	decide(t, s, Decision{Act: Restore, IDs: []string{"k1", "k2"}})
	if got := by("k1") + by("k2"); got != "draft draft k3 k1" {
		t.Errorf("both restored: %q", got)
	}
	if revs, err := s.History(t.Context(), "k4"); err != nil || len(revs) != 1 {
		t.Errorf("a card beside them has %d revisions, %v", len(revs), err)
	}
}

// TestQuotedInPart: of a long card that another contradicts, the first lines are shown.
func TestQuotedInPart(t *testing.T) {
	for lines, want := range map[int]string{maxQuotedLines: "", maxQuotedLines + 3: "… and 3 more lines of k1"} {
		s := store(t, draft("k1", "x"+strings.Repeat("\nx", lines-1)))
		got := quoted(s, "k1")
		if last := got[len(got)-1]; (last == want) != (want != "") || len(got) > maxQuotedLines+2 ||
			got[0] != "k1 says:" {
			t.Errorf("%d lines: %d, %q", lines, len(got), last)
		}
	}
}
