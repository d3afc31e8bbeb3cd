package memory

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/consult"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
)

// Limits of the pass at a task's end, whose result is only cards.
const (
	finalPassCalls   = 4
	finalPassTimeout = 2 * time.Minute
)

// maxFinalReasons is how many reasons for leaving a path the pass receives.
const maxFinalReasons = 5

// Learn reads the paths that the task has left, and the pairs of the path that stayed, and writes
// cards before the turn ends. It records the intent first: after a crash in between, the extractor
// replaces the model, which is not asked again. The ids of the cards are the same in either case.
// If the stream is damaged where it must be read, no card is written and the turn still ends.
func (m *Memory) Learn(ctx, keep context.Context) error {
	begun := m.State().Learning
	done := &op.PassDone{Trigger: op.TriggerEnd}
	var asks consult.Model = passModel{m, m.o.Model}
	if begun != nil {
		asks, done.Fallback = nil, "the program stopped while the model was asked; it is not asked again"
	} else {
		begun = &op.PassBegun{Trigger: op.TriggerEnd, Ranges: []op.Range{}}
		for _, span := range m.State().Steps.Branches(m.State().Steps.Unread(m.State().Current)) {
			begun.Ranges = append(begun.Ranges, m.State().Steps.Ranges(span)[0])
		}
		if err := m.Record(keep, begun); err != nil {
			return err
		}
	}
	err := m.readAbandoned(ctx, keep, asks, begun.Ranges, done)
	if errors.Is(err, opstream.ErrCorrupt) { // otherwise no turn could ever end
		return m.Record(keep, &op.PassDone{
			Ranges: begun.Ranges, RangeTokens: m.State().RangeTokens(begun.Ranges), EAS: m.State().Model.EAS,
			Trigger: op.TriggerEnd, Cards: []string{}, NotWritten: []string{err.Error()},
		})
	}
	return err
}

// readAbandoned runs the pass over ranges of steps that were left, and over pairs.
func (m *Memory) readAbandoned(ctx, keep context.Context, asks consult.Model, ranges []op.Range,
	done *op.PassDone) error {
	pairs, err := m.pairs(m.State().Turn.Pairs)
	if err != nil {
		return err
	}
	last := m.State().Turn.Pairs
	if len(ranges) > 0 {
		last = ranges[len(ranges)-1]
	}
	req := m.passRequest(last, nil)
	req.Ranges, req.Over, req.Pairs, req.From = ranges, true, pairs, m.State().Current
	var reasons []string
	for i, r := range ranges {
		ops, err := m.Ops(r)
		if err != nil {
			return err
		}
		req.Ops = append(req.Ops, ops...)
		ids := slices.Collect(m.State().Steps.In(ranges[i : i+1]))
		last := m.State().Steps.At(ids[len(ids)-1])
		req.Starts = append(req.Starts, m.State().Steps.At(ids[0]).Parent)
		req.From = last.ID
		if !slices.Contains(reasons, last.LeftBy) && last.LeftBy != "" {
			reasons = append(reasons, last.LeftBy)
		}
	}
	req.Reason = strings.Join(reasons[max(0, len(reasons)-maxFinalReasons):], "; ")
	return m.runPass(ctx, keep, asks, req, done)
}
