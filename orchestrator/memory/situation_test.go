package memory

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/optest"
	"anamnesis/orchestrator/state"
)

// recorded is a situation: what was asked for, the call that failed, and the
// card of the project's own set that an agent in it needs.
type recorded struct {
	Want, Request, Tool, Args, Stdout, Stderr string
	Exit                                      int
}

func situations(t *testing.T) (out []recorded) {
	t.Helper()
	data, err := os.ReadFile("testdata/situations.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var r recorded
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// Fold returns the state after the call.
func (r recorded) fold(t *testing.T) *state.State {
	t.Helper()
	call := op.Call{ID: "c1", Name: r.Tool, Args: r.Args}
	b := &op.ToolReturned{Call: "c1", Name: r.Tool, Exit: &r.Exit, Stdout: r.Stdout, Stderr: r.Stderr, Text: r.Stdout + r.Stderr, IsError: true}
	return optest.Fold(t, state.Fold, optest.Number(&op.TaskOpened{Task: "t"}, &op.UserSaid{Text: r.Request, Source: op.SourceRequest},
		&op.ModelReplied{Calls: []op.Call{call}}, &op.ToolCalled{Call: "c1", Name: r.Tool, Args: r.Args}, b))
}

// ownCards is a knowledge base of the project's own set.
func ownCards(t *testing.T) knowledgebase.Layers {
	t.Helper()
	set, err := retrieval.ReadSet("../../knowledge_base/retrieval/testdata/cards")
	if err != nil {
		t.Fatal(err)
	}
	s, err := knowledgebase.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	var cards []*card.Card
	for i, d := range set.Docs {
		c, err := card.Parse([]byte("---\ntype: knowledge_card\ntopic: x\nsource_task: t\n---\n" + d.Text + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		c.ID, c.Topic, c.Created = d.ID, d.Title, time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)
		cards = append(cards, c)
	}
	for part := range slices.Chunk(cards, 50) {
		if _, err := s.Apply(t.Context(), knowledgebase.Change{Cards: part}); err != nil {
			t.Fatal(err)
		}
	}
	return knowledgebase.Layers{s}
}

// TestSituations holds how many recorded situations find the card an agent in
// them needs: what was printed is mostly not about the failure.
func TestSituations(t *testing.T) {
	m := &Memory{Ledger: new(journal.Ledger), layers: ownCards(t)}
	found, first := 0, 0
	for _, r := range situations(t) {
		parts := r.fold(t).Recall.Queries("jump", r.fold(t).Said.Request)
		hits, err := m.searchParts(t.Context(), parts, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(hits[:min(len(hits), recallCards)], func(h recalled.Hit) bool { return h.Card.ID == r.Want })
		switch {
		case at < 0:
			t.Logf("%s is not found by %q", r.Want, parts)
		case at == 0:
			first++
		}
		if at >= 0 {
			found++
		}
	}
	if found < 17 || first < 16 {
		t.Errorf("%d of the cards wanted are found, %d of them first; 17 and 16 are promised", found, first)
	}
}
