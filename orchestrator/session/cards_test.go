package session

import (
	"testing"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/orchestrator/taskdir"
)

// TestRecallShowsWhatTasksSee: another agent is shown no draft that no stream bears out, whatever it says of itself.
func TestRecallShowsWhatTasksSee(t *testing.T) {
	root := t.TempDir()
	s := &Service{
		Home: taskdir.Home{User: root, State: root, Data: root, Config: root},
		o:    Options{Getenv: func(string) string { return "" }},
	}
	store, err := s.Cards("", knowledgebase.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	c := &card.Card{
		ID: "c1", Topic: "make test has no rule", SourceTask: "t", Provenance: card.Provenance{Task: "t"},
		Issue: []string{"make: *** No rule to make target"},
	}
	for want, state := range []card.State{card.Draft, card.Reviewed} {
		c.State = state
		if _, err := store.Apply(t.Context(), knowledgebase.Change{By: knowledgebase.Person, Cards: []*card.Card{c}}); err != nil {
			t.Fatal(err)
		}
		hits, err := s.Recall(t.Context(), "", "", knowledgebase.Query{Text: "make: *** No rule to make target"})
		if err != nil || len(hits) != want {
			t.Errorf("%s: %d hits, %v", state, len(hits), err)
		}
		if c, err = store.Get("c1"); err != nil {
			t.Fatal(err)
		}
	}
}
