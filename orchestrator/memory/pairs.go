package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"anamnesis/anamnesis"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// pairsFile is the file in a task's folder that holds its pairs: one JSON object a line. Of lines with
// the same card the last counts. Earlier versions wrote further keys, which are not read any more.
const pairsFile = "repairs.jsonl"

// pairLine is a line of pairsFile.
type pairLine struct {
	Card *card.Card `json:"card"`
}

// LearnRepairs records, at a turn's end, the commands that failed and later succeeded. They wait for a user, and for
// the pass that asks a model for lessons: nothing of them enters a context or the knowledge base by itself. A pair's id
// is the same after a crash between the write of the file and of the operation.
func (m *Memory) LearnRepairs(keep context.Context) error {
	found := &op.RepairsFound{Range: op.Range{First: m.State().Repairs.FailedAt, Last: m.State().Last},
		Cards: []string{}}
	pairs, err := m.pairs(found.Range)
	if errors.Is(err, opstream.ErrCorrupt) { // otherwise no turn could ever end
		found.NotWritten = []string{err.Error()}
		return m.Record(keep, found)
	}
	if err != nil {
		return err
	}
	found.Pairs, found.Asks = len(pairs), len(pairs) > 0 && (m.o.Model != nil || m.o.Reader != nil)
	cards := anamnesis.PairCards(pairs)
	shown := m.lineage()
	seen := func(c *card.Card) bool { return m.claims(c) || slices.Contains(shown, c.ID) }
	held := verified(m.ID, m.layers.Visible(knowledgebase.Query{}), cards, seen)
	m.verified = append(m.verified, held...)
	if err := errors.Join(RecordPairs(m.Home, m.ID, cards), m.cards.Count(held...)); err != nil {
		found.NotWritten = append(found.NotWritten, err.Error())
	}
	return m.Record(keep, found)
}

// verified returns that drafts held in a task: it met their error and made their change before the command
// succeeded, as its pairs show. seen reports whether the task had been shown a card. A pair that text from
// outside may have suggested is no witness.
func verified(task string, drafts, pairs []*card.Card, seen func(*card.Card) bool) (events []usage.Event) {
	for _, p := range pairs {
		for _, c := range drafts {
			if p.Provenance.Tainted || c.State != card.Draft || seen(c) ||
				!anamnesis.SameChange(c.Solution, p.Solution) {
				continue
			}
			if slices.ContainsFunc(c.Issue, func(issue string) bool { return errorOf(issue) == errorOf(p.Issue[0]) }) {
				events = append(events, usage.Event{Card: c.ID, What: usage.Verified, Task: task,
					Op: p.Provenance.Ranges[0].Last, Text: c.Hash()})
			}
		}
	}
	return events
}

// pairs returns the pairs among operations; none of an empty range.
func (m *Memory) pairs(r op.Range) ([]anamnesis.Pair, error) {
	if r.Last == 0 {
		return nil, nil
	}
	ops, err := m.Ops(r)
	if err != nil {
		return nil, err
	}
	req := m.passRequest(r, ops)
	if req.Tainted, err = m.taintedBefore(r.First); err != nil {
		return nil, err
	}
	return anamnesis.Pairs(&req, m.State().Steps.PathSet(m.State().Current)), nil
}

// RecordPairs appends the cards of a task's pairs to its file.
func RecordPairs(h taskdir.Home, task string, pairs []*card.Card) error {
	if len(pairs) == 0 {
		return nil
	}
	var lines bytes.Buffer
	for _, c := range pairs {
		if err := json.NewEncoder(&lines).Encode(pairLine{c}); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(filepath.Join(h.Task(task), pairsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(lines.Bytes())
	return errors.Join(err, f.Close())
}

// PairsWaiting returns the cards of all tasks' pairs that the store does not hold, the newest first. It
// leaves out files and lines that cannot be read.
func PairsWaiting(h taskdir.Home, store *knowledgebase.Store) []*card.Card {
	out := []*card.Card{}
	tasks, _ := h.Tasks()
	for _, id := range tasks {
		data, _ := os.ReadFile(filepath.Join(h.Task(id), pairsFile))
		latest := map[string]*card.Card{}
		for line := range bytes.Lines(data) {
			var l pairLine
			if json.Unmarshal(line, &l) == nil && l.Card != nil {
				latest[l.Card.ID] = l.Card
			}
		}
		for id, c := range latest {
			if _, err := store.Get(id); errors.Is(err, knowledgebase.ErrNotFound) {
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(a, b *card.Card) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	return out
}
