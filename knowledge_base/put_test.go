package knowledgebase

import (
	"testing"

	"anamnesis/knowledge_base/card"
)

// TestTwins: a card that says what another one says is not stored again, unless other tasks may see it and
// may not see that one.
func TestTwins(t *testing.T) {
	plain := func(*card.Card) {}
	tainted := func(c *card.Card) { c.Provenance.Tainted = true }
	general := func(c *card.Card) { c.Generalizes = []string{"k8", "k9"} }
	for _, tt := range []struct {
		name          string
		first, second func(c *card.Card)
		want          bool // the second is stored
	}{
		{"two alike", plain, plain, false},
		{"the second says more", plain, func(c *card.Card) { c.Issue = append(c.Issue, "more") }, true},
		{"the first holds outside text", tainted, plain, true},
		{"the second holds outside text", plain, tainted, false},
		{"both do", tainted, tainted, false},
		{"the first is drawn from others", general, plain, true},
		{"both are only for their task", general, tainted, false},
	} {
		s, err := Open(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		one, two := newCard("k1", "topic", "issue"), newCard("k2", "topic", "issue")
		tt.first(one)
		tt.second(two)
		_, created, err := s.Put(t.Context(), one)
		if err != nil || !created {
			t.Fatalf("%s: %v, %v", tt.name, created, err)
		}
		if _, created, err := s.Put(t.Context(), two); err != nil || created != tt.want {
			t.Errorf("%s: stored %v, %v", tt.name, created, err)
		}
		s.Close()
	}
}
