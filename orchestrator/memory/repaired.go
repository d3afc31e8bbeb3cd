package memory

import (
	"context"
	"errors"
	"slices"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/wording"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
)

// LearnRepairs records, at a turn's end, the commands that failed and later succeeded, and writes the
// cards that are worth it ([Earlier.Worth]). If a pass wrote a provisional card about the same failure before anything had
// worked, the new card completes and supersedes it. The cards are durable before the operation
// that names them, and their ids are the same after a crash in between.
func (m *Memory) LearnRepairs(keep context.Context) error {
	found := &op.RepairsFound{Range: op.Range{First: m.State().Repairs.FailedAt, Last: m.State().Last}, Cards: []string{}}
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
	fixed := make(map[string]bool)
	for _, r := range repaired {
		fixed[errorOf(r.Card.Issue[0])] = true
	}
	known, earlier := new(wording.Lessons), new(Earlier)
	if len(repaired) > 0 {
		known, earlier = wording.LessonsOf(m.layers.InUse()), ReadEarlier(m.Home, m.ID)
	}
	var cards, made, left []*card.Card
	for _, r := range repaired {
		made = append(made, r.Card)
		worth := earlier.Worth(&r, known)
		if old := m.provisional(ops, r, fixed); old != nil {
			complete(r.Card, old, old.Provenance.Model != anamnesis.WriterExtractor)
			worth = []*card.Card{r.Card}
			if !slices.Contains(found.Superseded, old.ID) {
				found.Superseded, left = append(found.Superseded, old.ID), append(left, old)
			}
		}
		cards = append(cards, worth...)
	}
	found.Cards, found.NotWritten, _ = known.Put(keep, m.cards, cards)
	for _, old := range left {
		old.State = card.Superseded
	}
	if len(left) > 0 {
		if _, err := m.cards.Apply(keep, knowledgebase.Change{Cards: left, Message: "Supersede the cards that repairs complete"}); err != nil {
			found.NotWritten = append(found.NotWritten, err.Error())
		}
	}
	if err := earlier.Record(m.Home, m.ID, repaired); err != nil {
		found.NotWritten = append(found.NotWritten, err.Error())
	}
	found.Observed = m.observed(made, nil)
	return m.Record(keep, found)
}

// provisional returns the unreviewed card of a pass that read a path between the failure and
// its repair, if the repair completes it; otherwise nil. A card of the extractor qualifies if it
// quotes that failure and no error outside of fixed, a model's only card if there is no other
// repair.
func (m *Memory) provisional(ops []op.Op, r anamnesis.Repaired, fixed map[string]bool) *card.Card {
	span, sign := r.Card.Provenance.Ranges[0], errorOf(r.Card.Issue[0])
	for i := range ops {
		b, ok := ops[i].Body.(*op.PassDone)
		if !ok || !slices.ContainsFunc(b.Ranges, func(r op.Range) bool { return r.First <= span.Last && span.First <= r.Last }) {
			continue
		}
		read := slices.ContainsFunc(b.Ranges, func(p op.Range) bool { return p.Contains(r.Failed) })
		for _, id := range b.Cards {
			c, err := m.cards.Get(id)
			again := err == nil && slices.Contains(m.cards.SupersededBy(c.ID), r.Card.ID) // after a crash in between
			if err != nil || c.State != card.Draft && !again {
				continue
			}
			quotes := slices.ContainsFunc(c.Issue, func(s string) bool { return errorOf(s) == sign })
			others := slices.ContainsFunc(c.Issue, func(s string) bool { return !fixed[errorOf(s)] })
			alone := len(b.Cards) == 1 && len(c.Issue) == 1
			if b.Writer == anamnesis.WriterExtractor && (quotes && !others || alone && read) || b.Writer != anamnesis.WriterExtractor && len(b.Cards) == 1 && len(fixed) == 1 {
				return c
			}
		}
	}
	return nil
}

// complete replaces a provisional card by a repair's card. It copies the text that a model
// wrote, marked as not confirmed by any record.
func complete(c, old *card.Card, byModel bool) {
	c.Supersedes, c.Provenance.JumpOp = []string{old.ID}, old.Provenance.JumpOp
	if !byModel {
		return
	}
	for i, s := range old.Issue {
		if i == 0 {
			s = old.Topic + ": " + s
		}
		c.Issue = append(c.Issue, card.ModelSays+s)
	}
	for _, s := range old.Solution {
		c.Solution = append(c.Solution, card.ModelSays+s)
	}
	for _, s := range old.Constraint {
		c.Constraint = append(c.Constraint, card.ModelSays+s)
	}
}
