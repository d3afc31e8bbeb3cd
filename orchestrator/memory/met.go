package memory

import (
	"encoding/json"
	"slices"

	"anamnesis/anamnesis/failure"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

// recallFailure is the reason of the record that a failed call met a card's error.
const recallFailure = "failure"

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
	shown := m.lineage()
	for _, c := range m.layers.Visible(knowledgebase.Query{}) {
		quotes := slices.ContainsFunc(c.Issue, func(issue string) bool { return errorOf(issue) == f.Signature })
		if quotes && !slices.Contains(shown, c.ID) && !m.claims(c) {
			rec.Met = append(rec.Met, c.ID)
		}
	}
	if len(rec.Met) == 0 {
		return nil
	}
	return rec
}
