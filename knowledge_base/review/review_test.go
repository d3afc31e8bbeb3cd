package review

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

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
	return &card.Card{ID: id, Topic: "topic of " + id, SourceTask: "t", Created: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), Issue: []string{issue}}
}

func queue(t *testing.T, s *knowledgebase.Store) string {
	t.Helper()
	items, _, err := Queue(t.Context(), s, MaxCards)
	if err != nil {
		t.Fatal(err)
	}
	return string(Compose(items))
}

// Whatever cards say, composing and parsing gives their texts back.
func TestComposeParse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var items []Item
		for i := range rapid.IntRange(0, 5).Draw(rt, "n") {
			line := rapid.SampledFrom([]string{"", "---", "%% note", "=== [aaaaaa] card x 0123456789abcdef", "text", "- **Issue**: x", "\r"})
			text := "---\n" + strings.Join(rapid.SliceOf(line).Draw(rt, "text"), "\n")
			items = append(items, Item{ID: fmt.Sprintf("k%d", i), Fingerprint: fmt.Sprintf("%016x", i), Text: []byte(text), Notes: []string{"a\nnote", ""}})
		}
		wishes, err := Parse(Compose(items))
		if err != nil || len(wishes) != len(items) {
			rt.Fatalf("%d of %d, %v", len(wishes), len(items), err)
		}
		for i, w := range wishes {
			if w.ID != items[i].ID || w.Fingerprint != items[i].Fingerprint || string(w.Text) != string(normal(items[i].Text)) {
				rt.Errorf("item %d came back as %q, was %q", i, w.Text, items[i].Text)
			}
		}
	})
}

func TestApplyNothing(t *testing.T) {
	s := store(t, draft("k1", "one"), draft("k2", "two"))
	out, err := Apply(t.Context(), s, []byte(queue(t, s)))
	if err != nil || len(out.Left) != 2 || len(out.Changed) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
	if revs, err := s.History(t.Context(), "k1"); err != nil || len(revs) != 1 {
		t.Errorf("a review that changes nothing is in the history: %v, %v", revs, err)
	}
}

// One stale card, and nothing of the review is applied.
func TestApplyStale(t *testing.T) {
	s := store(t, draft("k1", "one"), draft("k2", "two"))
	doc := strings.ReplaceAll(queue(t, s), "state: draft", "state: reviewed")
	if _, err := Decide(t.Context(), s, Decision{Act: Reject, IDs: []string{"k2"}}); err != nil {
		t.Fatal(err)
	}
	var stale *StaleError
	if _, err := Apply(t.Context(), s, []byte(doc)); !errors.As(err, &stale) || fmt.Sprint(stale.IDs) != "[k2]" {
		t.Fatalf("got %v", err)
	}
	if c, err := s.Get("k1"); err != nil || c.State != card.Draft {
		t.Errorf("k1 is %s, %v", c.State, err)
	}
}

func TestApplyErrors(t *testing.T) {
	s := store(t, draft("k1", "one"), draft("k2", "two"))
	doc := queue(t, s)
	twice := doc + doc[strings.Index(doc, "=== ["):]
	for name, tt := range map[string]struct{ doc, want string }{
		"twice":          {twice, "has two headings"},
		"not a card":     {strings.Replace(doc, "topic: topic of k1", "topic:", 1), "topic is empty"},
		"another id":     {strings.Replace(doc, "id: k1", "id: k9", 1), `id became "k9"`},
		"itself":         {strings.Replace(doc, "id: k1", "id: k1\nsupersedes: [k1]", 1), "names itself"},
		"unknown merged": {strings.Replace(doc, "id: k1", "id: k1\nsupersedes: [k7]", 1), "k7, which is no card here"},
	} {
		_, err := Apply(t.Context(), s, []byte(tt.doc))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
		var text *TextError
		if name == "not a card" && (!errors.As(err, &text) || text.Err.Line != 1+strings.Count(tt.doc[:strings.Index(tt.doc, "topic:\n")], "\n")) {
			t.Errorf("%s: the line is not the document's: %v", name, err)
		}
	}
	if out, err := Apply(t.Context(), s, []byte(doc)); err != nil || len(out.Left) != 2 {
		t.Errorf("something was applied on the way: %+v, %v", out, err)
	}
}

// A merge retires nobody's card on its own: the merged one is superseded, also
// where it did not stand in the text.
func TestApplyMerge(t *testing.T) {
	s := store(t, draft("k1", "one"), draft("k2", "two"))
	if _, err := Decide(t.Context(), s, Decision{Act: Approve, IDs: []string{"k2"}}); err != nil {
		t.Fatal(err)
	}
	doc := strings.Replace(queue(t, s), "id: k1", "id: k1\nsupersedes: [k2]", 1)
	out, err := Apply(t.Context(), s, []byte(doc))
	if err != nil || fmt.Sprint(out.Superseded) != "[k2]" {
		t.Fatalf("%+v, %v", out, err)
	}
	if c, err := s.Get("k2"); err != nil || c.State != card.Superseded || c.VerifiedAt == nil {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestApplyMergeOf: what a merged card names is superseded once; a card that was superseded or retired stays as it is.
func TestApplyMergeOf(t *testing.T) {
	for _, tt := range []struct {
		name string
		act  Act // on k2 before; "" for none
		text string
		want string // the superseded ones
		then card.State
	}{
		{"a reviewed card", Approve, "[k2]", "[k2]", card.Superseded},
		{"twice", Approve, "[k2, k2]", "[k2]", card.Superseded},
		{"a draft in the text", "", "[k2]", "[k2]", card.Superseded},
		{"a retired card", Retire, "[k2]", "[]", card.Retired},
		{"a superseded card", Supersede, "[k2]", "[]", card.Superseded},
	} {
		s := store(t, draft("k1", "one"), draft("k2", "two"), draft("k3", "three"))
		by := ""
		if tt.act == Supersede {
			by = "k3"
		}
		if tt.act != "" {
			if tt.act == Retire { // only a reviewed card can be
				if _, err := Decide(t.Context(), s, Decision{Act: Approve, IDs: []string{"k2"}}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Decide(t.Context(), s, Decision{Act: tt.act, IDs: []string{"k2"}, By: by}); err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
		}
		out, err := Apply(t.Context(), s, []byte(strings.Replace(queue(t, s), "id: k1", "id: k1\nsupersedes: "+tt.text, 1)))
		if err != nil || fmt.Sprint(out.Superseded) != tt.want {
			t.Errorf("%s: %+v, %v; want %s", tt.name, out, err, tt.want)
			continue
		}
		if c, err := s.Get("k2"); err != nil || c.State != tt.then {
			t.Errorf("%s: %+v, %v", tt.name, c, err)
		}
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

func FuzzParse(f *testing.F) {
	f.Add([]byte("%% x\n\n=== [aaaaaa] card k1 0123456789abcdef\n%% note\n---\ntext\n"))
	f.Add([]byte("text"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		wishes, err := Parse(doc)
		var syntax *SyntaxError
		if err != nil && (!errors.As(err, &syntax) || strings.Contains(err.Error(), "\n")) {
			t.Fatalf("not one clear error: %q", err)
		}
		for _, w := range wishes {
			if w.ID == "" || len(w.Fingerprint) != 16 || w.Line < 2 {
				t.Fatalf("%+v", w)
			}
		}
	})
}

// Cards that contradict one another, said or guessed, are never offered for merging
// but as a decision, whichever of them is read.
func TestOppositesAreADecision(t *testing.T) {
	said, told := draft("k1", "sqlite locks with two writers: set busy_timeout and retry the write"), draft("k2", "sqlite locks with two writers: set busy_timeout and retry a write")
	said.Contradicts = []string{"k2"}
	guessed, other := draft("k3", "the mirror upload fails at once behind the proxy: retry the upload"), draft("k4", "the mirror upload fails at once behind the proxy: never retry the upload")
	s := store(t, said, told, guessed, other)
	items, _, err := Queue(t.Context(), s, MaxCards)
	if err != nil || len(items) != 4 {
		t.Fatal(items, err)
	}
	for _, it := range items {
		notes := strings.Join(it.Notes, "\n")
		if strings.Contains(notes, "to merge them") || !strings.Contains(notes, "decide which holds") {
			t.Errorf("%s:\n%s", it.ID, notes)
		}
	}
}
