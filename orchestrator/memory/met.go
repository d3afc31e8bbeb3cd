package memory

import (
	"encoding/json"
	"slices"
	"sync"

	"anamnesis/anamnesis/failure"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

// recallFailure is the reason of the record that a failed call met a card's error.
const recallFailure = "failure"

// quotedErrors caches the cards of other tasks by the normal forms of the errors that they quote. It is
// read once a turn. The zero value is ready for use; its methods may be called concurrently.
type quotedErrors struct {
	mu    sync.Mutex
	turn  uint64
	cards map[string][]string // ids
}

func (q *quotedErrors) about(m *Memory, signature string) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if turn := m.State().Turn.LastWords; q.cards == nil || q.turn != turn {
		q.turn, q.cards = turn, make(map[string][]string)
		for _, c := range m.layers.Visible(knowledgebase.Query{}) {
			if m.claims(c) {
				continue
			}
			for _, issue := range c.Issue {
				q.cards[errorOf(issue)] = append(q.cards[errorOf(issue)], c.ID)
			}
		}
	}
	return q.cards[signature]
}

// Met returns the record that a failed command met the error of cards which neither this task nor, as far
// as the cards say, the tasks of the cards that it was shown had seen: it is a second witness of them.
// It returns nil if there is no such card. Nothing of the cards is shown.
func (m *Memory) Met(c op.Call, res *tool.Result) *op.CardsRecalled {
	if res.Exit == nil {
		return nil
	}
	var args struct{ Command string }
	_ = json.Unmarshal([]byte(c.Args), &args) // another tool's call has none
	out := failure.Output{
		Command: args.Command, Text: res.Stdout, Stderr: res.Stderr, Exit: *res.Exit, HasExit: true, Error: res.IsError,
	}
	f, failed := failure.Read(out)
	if lesson, _ := failure.Lesson(out); !failed || !lesson || f.Signature == "" {
		return nil
	}
	rec := &op.CardsRecalled{Query: f.Line, Why: recallFailure, Cards: []op.CardRef{}}
	for _, id := range m.quoted.about(m, f.Signature) {
		if !slices.Contains(m.lineage(), id) {
			rec.Met = append(rec.Met, id)
		}
	}
	if len(rec.Met) == 0 {
		return nil
	}
	return rec
}
