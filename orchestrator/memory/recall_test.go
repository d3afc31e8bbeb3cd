package memory

import (
	"slices"
	"strings"
	"testing"
	"time"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
)

// The best card for each part of the situation comes before the second of any,
// and none twice.
func TestInterleaveAnswers(t *testing.T) {
	answer := func(ids ...string) (hits []recalled.Hit) {
		for _, id := range ids {
			hits = append(hits, recalled.Hit{Card: &card.Card{ID: id}})
		}
		return hits
	}
	for _, tt := range []struct {
		answers [][]recalled.Hit
		want    []string
	}{
		{nil, nil},
		{[][]recalled.Hit{answer("a", "b")}, []string{"a", "b"}},
		{[][]recalled.Hit{answer("e1", "both", "e3"), answer("r1", "e1", "both", "r4")}, []string{"e1", "r1", "both", "e3", "r4"}},
		{[][]recalled.Hit{nil, answer("r1")}, []string{"r1"}},
	} {
		var got []string
		for _, h := range interleave(tt.answers) {
			got = append(got, h.Card.ID)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("got %v, want %v", got, tt.want)
		}
	}
}

// TestEachOnce: of cards about one topic of one repository the first is shown, unless a later one is believed further.
func TestEachOnce(t *testing.T) {
	hit := func(id, topic, repo string, rung recalled.Rung) recalled.Hit {
		return recalled.Hit{Card: &card.Card{ID: id, Topic: topic, Scope: card.Scope{Repo: repo}},
			Trust: recalled.Trust{Rung: rung}}
	}
	h, v := recalled.Hypothesis, recalled.Verified
	for _, tt := range []struct {
		hits []recalled.Hit
		want []string
	}{
		{nil, nil},
		{[]recalled.Hit{hit("a", "x", "r", h), hit("b", "x", "r", h)}, []string{"a"}},
		{[]recalled.Hit{hit("a", "x", "r", h), hit("b", "x", "s", h), hit("c", "y", "r", h)}, []string{"a", "b", "c"}},
		{[]recalled.Hit{hit("a", "x", "r", h), hit("c", "y", "r", h), hit("b", "x", "r", v)}, []string{"b", "c"}},
		{[]recalled.Hit{hit("a", "x", "r", v), hit("b", "x", "r", recalled.ReviewedRung)}, []string{"a"}},
	} {
		var got []string
		for _, h := range eachOnce(tt.hits) {
			got = append(got, h.Card.ID)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("got %v, want %v", got, tt.want)
		}
	}
}

// TestBetter: a card that is believed further is shown before a newer one.
func TestBetter(t *testing.T) {
	hit := func(rung recalled.Rung, day int) *recalled.Hit {
		return &recalled.Hit{
			Card:  &card.Card{Created: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)},
			Trust: recalled.Trust{Rung: rung},
		}
	}
	h, v, r := recalled.Hypothesis, recalled.Verified, recalled.ReviewedRung
	for _, tt := range []struct {
		a, b *recalled.Hit
		want bool
	}{
		{hit(v, 1), hit(h, 2), true}, {hit(h, 2), hit(v, 1), false}, {hit(r, 1), hit(v, 2), true},
		{hit(h, 2), hit(h, 1), true}, {hit(h, 1), hit(h, 2), false}, {hit(h, 1), hit(h, 1), false},
	} {
		if got := better(tt.a, tt.b); got != tt.want {
			t.Errorf("%s of %v before %s of %v: %v", tt.a.Trust.Rung, tt.a.Card.Created, tt.b.Trust.Rung,
				tt.b.Card.Created, got)
		}
	}
}

// TestReopen: a recorded operation is shown in parts that say where they lie.
func TestReopen(t *testing.T) {
	o := op.Op{Seq: 7, Step: 2, Body: &op.OutputKept{Text: "aé\nbcd"}} // é has bytes 1 and 2
	for _, tt := range []struct {
		from, n int
		want    string // of the quoted text and what follows
	}{
		{0, 7, "| aé\n| bcd"},
		{0, 8, "| aé\n| bcd"},
		{0, 6, "| aé\n| bc\nThese are bytes 0 to 6 of 7; recall with op 7 and from 6 returns the next part."},
		{0, 2, "| a\nThese are bytes 0 to 1 of 7; recall with op 7 and from 1 returns the next part."},
		{2, 4, "| \n| bcd\nThese are bytes 3 to 7 of 7."},
		{1, 1, "| \nThese are bytes 1 to 1 of 7; recall with op 7 and from 1 returns the next part."},
		{7, 4, "| \nThese are bytes 7 to 7 of 7."},
	} {
		got, err := reopened(o, tt.from, tt.n)
		if _, text, _ := strings.Cut(got, "quoted:\n"); err != nil || text != tt.want {
			t.Errorf("from %d, %d bytes: %q, %v; want %q", tt.from, tt.n, text, err, tt.want)
		}
	}
	if text, err := reopened(o, 8, 4); err == nil {
		t.Errorf("behind its end: %q", text)
	}

	long := strings.Repeat("x", minReopened+1)
	m := memoryOf(t, &op.UserSaid{Text: long, Source: op.SourceSteer})
	if text, err := m.Reopen(5, 0); err != nil || !strings.HasSuffix(text, "xxx") {
		t.Errorf("%.80s, %v", text, err)
	}
	m.State().Model.EAS = 100
	if text, err := m.Reopen(5, 0); err != nil || !strings.Contains(text, "These are bytes 0 to 4000 of") ||
		m.recallTokens() != minRecallTokens {
		t.Errorf("%.80s, %v", text, err)
	}
	if m.State().Model.EAS = 80_000; m.recallTokens() != 10_000 {
		t.Errorf("a recall may have %d tokens", m.recallTokens())
	}
	if text, err := m.Reopen(m.State().Last+1, 0); err == nil {
		t.Errorf("an operation that does not exist: %q", text)
	}
}

// TestMask: the tokens after masking are those of the context with each result's line in its place.
func TestMask(t *testing.T) {
	m := memoryOf(t, &op.ModelReplied{
		Text:  strings.Repeat("think ", 300),
		Calls: []op.Call{{ID: "c1", Name: "Bash", Args: "{}"}, {ID: "c2", Name: "Bash", Args: "{}"}},
	},
		&op.ToolCalled{Call: "c1", Name: "Bash", Args: "{}"},
		&op.ToolReturned{Call: "c1", Name: "Bash", Text: strings.Repeat("long output ", 300)},
		&op.ToolCalled{Call: "c2", Name: "Bash", Args: "{}"},
		&op.ToolReturned{Call: "c2", Name: "Bash", Text: strings.Repeat("more output ", 200)})
	before, last := m.State().Context.Tokens, m.State().Last
	if err := m.Mask(t.Context(), state.Action{Seqs: []uint64{last, last - 2}, Limit: 7, Target: 5, Reason: "window"}); err != nil {
		t.Fatal(err)
	}
	o, err := m.Op(last + 1)
	if err != nil {
		t.Fatal(err)
	}
	b := o.Body.(*op.ContextMasked)
	if b.Before != before || b.After != m.State().Context.Tokens || b.After > before-900 || b.Limit != 7 ||
		b.Target != 5 || b.Why != "window" || len(b.Results) != 2 {
		t.Errorf("recorded %+v; the context has %d tokens, of %d", b, m.State().Context.Tokens, before)
	}
	if err := m.Mask(t.Context(), state.Action{Seqs: []uint64{1}}); err == nil {
		t.Error("an operation that is no result was masked")
	}
}
