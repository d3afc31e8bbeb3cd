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

// LearnRepairs records, at a turn's end, the commands that failed and later succeeded. They wait for a
// user: nothing of them enters a context or the knowledge base by itself. A pair's id is the same after
// a crash between the write of the file and of the operation.
func (m *Memory) LearnRepairs(keep context.Context) error {
	found := &op.RepairsFound{Range: op.Range{First: m.State().Repairs.FailedAt, Last: m.State().Last}, Cards: []string{}}
	ops, err := m.Ops(found.Range)
	if errors.Is(err, opstream.ErrCorrupt) { // otherwise no turn could ever end
		found.NotWritten = []string{err.Error()}
		return m.Record(keep, found)
	}
	if err != nil {
		return err
	}
	req := m.passRequest(found.Range, ops)
	if req.Tainted, err = m.taintedBefore(found.Range.First); err != nil {
		return err
	}
	pairs := anamnesis.PairCards(&req, m.State().Steps.PathSet(m.State().Current))
	found.Pairs = len(pairs)
	if err := RecordPairs(m.Home, m.ID, pairs); err != nil {
		found.NotWritten = append(found.NotWritten, err.Error())
	}
	return m.Record(keep, found)
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
