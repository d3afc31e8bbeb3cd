package review

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
)

// decideOn is a decision about what the card says now.
func decideOn(t *testing.T, s *knowledgebase.Store, act Act, id, by string) Decision {
	d := Decision{Act: act, IDs: []string{id}, By: by, Seen: map[string]string{}}
	for _, seen := range []string{id, by} {
		if seen == "" {
			continue
		}
		_, mark, err := s.Text(seen)
		if err != nil {
			t.Fatal(err)
		}
		d.Seen[seen] = mark
	}
	return d
}

// undoLast takes back what a user is shown as the last act.
func undoLast(t *testing.T, desk *Desk) (Done, error) {
	last, _ := desk.Last()
	return desk.Undo(t.Context(), last.Seq)
}

// Who was shown one act does not take another back that came after it.
func TestDeskUndoesWhatWasShown(t *testing.T) {
	s := store(t, draft("k1", "one"), draft("k2", "two"))
	desk := NewDesk(s)
	shown, err := desk.Decide(t.Context(), decideOn(t, s, Approve, "k1", ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := desk.Decide(t.Context(), decideOn(t, s, Reject, "k2", "")); err != nil {
		t.Fatal(err)
	}
	var later *LaterError
	if _, err := desk.Undo(t.Context(), shown.Seq); !errors.As(err, &later) || later.Last.ID != "k2" {
		t.Errorf("an act that is not the last: %v", err)
	}
	for id, want := range map[string]card.State{"k1": card.Reviewed, "k2": card.Retired} {
		if c, err := s.Get(id); err != nil || c.State != want {
			t.Errorf("%s is %v (%v), want %s as it was decided", id, c, err, want)
		}
	}
}

// writeOver changes a card's file as an editor would.
func writeOver(t *testing.T, s *knowledgebase.Store, id string) {
	t.Helper()
	text, _, err := s.Text(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.List() {
		if e.ID == id {
			err = os.WriteFile(e.Path, append(text, "By another hand.\n"...), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func texts(t *testing.T, s *knowledgebase.Store) map[string]string {
	out := make(map[string]string)
	for _, e := range s.List() {
		text, _, err := s.Text(e.ID)
		if err != nil {
			t.Fatal(err)
		}
		out[e.ID] = string(text)
	}
	return out
}

// Whatever is decided in whatever order, taking all of it back gives every
// card the bytes it had.
func TestDeskUndoes(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { undoAll(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

func undoAll(t *testing.T, random *rand.Rand) {
	// Each look at the clock is an hour later, so that a date made anew is seen.
	var hours atomic.Int64
	s, err := knowledgebase.Open(t.TempDir(), &knowledgebase.Options{Now: func() time.Time {
		return time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(hours.Add(1)) * time.Hour)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, id := range []string{"k1", "k2", "k3"} {
		if _, _, err := s.Put(t.Context(), draft(id, "issue "+id)); err != nil {
			t.Fatal(err)
		}
	}
	desk := NewDesk(s)
	states := []map[string]string{texts(t, s)}
	acts := []Act{Approve, Reject, Retire, Restore, Supersede}
	others := map[string]string{"k1": "k2", "k2": "k3", "k3": "k1"}
	for range 10 {
		id, by := []string{"k1", "k2", "k3"}[random.IntN(3)], ""
		act := acts[random.IntN(len(acts))]
		if act == Supersede {
			by = others[id]
		}
		_, err := desk.Decide(t.Context(), decideOn(t, s, act, id, by))
		var state *StateError
		if errors.As(err, &state) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, texts(t, s))
	}
	for i := len(states) - 2; i >= 0; i-- {
		if _, err := undoLast(t, desk); err != nil {
			t.Fatal(err)
		}
		now := texts(t, s)
		for id, want := range states[i] {
			if now[id] != want {
				t.Fatalf("%s taken back to\n%s\nwant\n%s", id, now[id], want)
			}
		}
	}
	if _, err := undoLast(t, desk); !errors.Is(err, ErrNothingToUndo) {
		t.Fatalf("one undo too many: %v", err)
	}
}

// A card that changed after it was read is not decided about, and an act over
// which somebody wrote since is not taken back.
func TestDeskStale(t *testing.T) {
	s := store(t, draft("k1", "one"), draft("k2", "two"))
	desk := NewDesk(s)
	read := decideOn(t, s, Approve, "k1", "")
	both := decideOn(t, s, Supersede, "k2", "k1")
	text, mark, err := s.Text("k1")
	if err != nil {
		t.Fatal(err)
	}
	edited := []byte(string(text) + "\nA word more.\n")
	if _, err := desk.Edit(t.Context(), "k1", mark, edited); err != nil {
		t.Fatal(err)
	}
	var conflict *knowledgebase.ConflictError
	for _, stale := range []Decision{read, both} {
		if _, err := desk.Decide(t.Context(), stale); !errors.As(err, &conflict) {
			t.Errorf("%s of a text nobody sees any more: %v", stale.Act, err)
		}
	}
	if _, err := desk.Edit(t.Context(), "k1", mark, text); !errors.As(err, &conflict) {
		t.Errorf("an edit over another: %v", err)
	}
	if _, err := desk.Decide(t.Context(), Decision{Act: Approve, IDs: []string{"k1"}}); err == nil {
		t.Error("decided about a card nobody says to have read")
	}

	done, err := desk.Decide(t.Context(), decideOn(t, s, Reject, "k2", ""))
	if err != nil {
		t.Fatal(err)
	}
	if said, ok := desk.Act(done.Seq); !ok || said.What != "Rejected: topic of k2" {
		t.Errorf("said %q, %v", said.What, ok)
	}
	if c, err := s.Get("k2"); err != nil || c.State != card.Retired {
		t.Fatal(c, err)
	}
	writeOver(t, s, "k2")
	if _, err := undoLast(t, desk); !errors.As(err, &conflict) {
		t.Errorf("taken back over another's text: %v", err)
	}
	if done, err := undoLast(t, desk); err != nil || done.ID != "k1" {
		t.Errorf("the act before it: %+v, %v", done, err)
	}
}

// TestDeskSeveral: several cards are decided about at once, but only one is restored, and none is not enough; an edit
// that changes nothing is nothing to take back.
func TestDeskSeveral(t *testing.T) {
	s := store(t, draft("k1", "one"), draft("k2", "two"))
	desk := NewDesk(s)
	_, a, err := s.Text("k1")
	if err != nil {
		t.Fatal(err)
	}
	text, b, err := s.Text("k2")
	if err != nil {
		t.Fatal(err)
	}
	both := Decision{Act: Retire, IDs: []string{"k1", "k2"}, Seen: map[string]string{"k1": a, "k2": b}}
	if _, err := desk.Decide(t.Context(), Decision{Act: Retire}); err == nil {
		t.Error("decided about no card")
	}
	if done, err := desk.Edit(t.Context(), "k2", b, text); err != nil || done.What != "Nothing to change: topic of k2" {
		t.Errorf("the same text: %+v, %v", done, err)
	}
	if last, ok := desk.Last(); ok {
		t.Errorf("nothing changed, and can be taken back: %+v", last)
	}
	if done, err := desk.Decide(t.Context(), both); err != nil ||
		done.What != "Retired 2 cards, the first: topic of k1" {
		t.Errorf("%+v, %v", done, err)
	}
	for id := range both.Seen {
		_, mark, err := s.Text(id)
		if err != nil {
			t.Fatal(err)
		}
		both.Seen[id] = mark
	}
	both.Act = Restore
	if _, err := desk.Decide(t.Context(), both); err == nil {
		t.Error("two were restored at once")
	}
}
