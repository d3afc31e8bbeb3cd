package orchestrator

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/opstream/op"
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

// fold gives the state after the call.
func (r recorded) fold(t *testing.T) *State {
	t.Helper()
	call := op.Call{ID: "c1", Name: r.Tool, Args: r.Args}
	c := &CallState{Call: call, Called: true}
	b := &op.ToolReturned{Call: "c1", Name: r.Tool, Exit: &r.Exit, Stdout: r.Stdout, Stderr: r.Stderr, Text: r.Stdout + r.Stderr}
	return &State{Request: r.Request, LastTrouble: troubleOf(c, b)}
}

// ownCards is a knowledge base of the project's own set.
func ownCards(t *testing.T) knowledgebase.Layers {
	t.Helper()
	set, err := retrieval.ReadSet("../knowledge_base/retrieval/testdata/cards")
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
	task := &Task{layers: ownCards(t)}
	found, first := 0, 0
	for _, r := range situations(t) {
		parts := r.fold(t).situation("jump")
		hits, err := task.searchParts(t.Context(), parts)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(hits[:min(len(hits), recallCards)], func(h knowledgebase.Hit) bool { return h.Card.ID == r.Want })
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

func TestSituationParts(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		result     op.ToolReturned
		want       Trouble
	}{
		{"Bash", `{"command":"npm ci"}`, op.ToolReturned{Stdout: "added 1\n", Stderr: "npm error code EUSAGE", Text: "exit 1"}, Trouble{"npm error code EUSAGE", "npm ci"}},
		{"ReadFile", `{"path":"a/b.go"}`, op.ToolReturned{Text: "open a/b.go: no such file or directory", Reads: []string{"a/b.go"}}, Trouble{"open a/b.go: no such file or directory", "ReadFile b.go"}},
		{"mcp__x", `[1]`, op.ToolReturned{Text: "refused"}, Trouble{"refused", "mcp__x"}},
		{"Bash", `{"command":"` + strings.Repeat("\u754c", 100) + `"}`, op.ToolReturned{}, Trouble{"", strings.Repeat("\u754c", 66)}},
	} {
		if got := troubleOf(&CallState{Call: op.Call{Name: tt.name, Args: tt.args}}, &tt.result); got != tt.want {
			t.Errorf("%s %s: %+v, want %+v", tt.name, tt.args, got, tt.want)
		}
	}
	s := &State{Request: "mend it", LastTrouble: Trouble{"not found", "make"}}
	if got := s.situation("jump"); !slices.Equal(got, []string{"not found", "not found\nmake", "mend it"}) {
		t.Errorf("after a jump: %q", got)
	}
	if got := s.situation("start"); !slices.Equal(got, []string{"mend it"}) {
		t.Errorf("at the start: %q", got)
	}
}
