package memory

import (
	"context"
	"errors"
	"slices"

	"anamnesis/anamnesis"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
)

// LearnRepairs writes a card for each command that failed and later succeeded, at a
// turn's end. A card that a pass wrote for one such failure alone, when the path was
// left and nothing had worked yet, is superseded. The cards are durable before the
// operation that names them, and their ids are the same after a crash in between.
func (m *Memory) LearnRepairs(keep context.Context) error {
	found := &op.RepairsFound{Range: op.Range{First: m.State().FailedAt, Last: m.State().Last}, Cards: []string{}}
	ops, err := m.Ops(found.Range)
	if errors.Is(err, opstream.ErrCorrupt) { // else no turn could ever end
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
	repaired := anamnesis.Repairs(&req)
	found.Pairs = len(repaired)
	var cards []*card.Card
	for _, r := range repaired {
		if old := m.provisional(ops, r.Failed); old != nil {
			r.Card.Supersedes = []string{old.ID}
			found.Superseded = append(found.Superseded, old.ID)
		}
		cards = append(cards, r.Card)
	}
	found.Cards, found.NotWritten = m.putCards(keep, cards)
	found.Observed = m.observed(cards, nil)
	return m.Record(keep, found)
}

// provisional returns the unreviewed card that the extractor wrote about one failure
// alone, that of operation seq, or nil.
func (m *Memory) provisional(ops []op.Op, seq uint64) *card.Card {
	for i := range ops {
		b, ok := ops[i].Body.(*op.PassDone)
		if !ok || b.Writer != anamnesis.WriterExtractor || len(b.Cards) != 1 ||
			!slices.ContainsFunc(b.Ranges, func(r op.Range) bool { return r.Contains(seq) }) {
			continue
		}
		if c, err := m.cards.Get(b.Cards[0]); err == nil && c.State == card.Draft && len(c.Issue) == 1 {
			return c
		}
	}
	return nil
}
