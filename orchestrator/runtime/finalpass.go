package runtime

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
)

// What the pass at a task's end may cost: nobody waits for more than its cards.
const (
	finalPassCalls   = 4
	finalPassTimeout = 2 * time.Minute
)

// maxFinalReasons is how many reasons for leaving a path it is told.
const maxFinalReasons = 5

// Learn reads the paths the task has left and writes cards, before the turn
// ends. The intent stands first: after a crash in between the model is not asked
// a second time, and the extractor writes in its place. The cards' ids are the
// same in either case. Where the stream is damaged in what has to be read for it
// no card is written, and the turn ends all the same.
func (t *Task) learn(ctx, keep context.Context) error {
	begun := t.state.Learning
	done := &op.PassDone{Trigger: state.TriggerEnd}
	var m anamnesis.Model = passModel{t}
	if begun != nil {
		m, done.Fallback = nil, "the program stopped while the model was asked; it is not asked again"
	} else {
		begun = &op.PassBegun{Trigger: state.TriggerEnd}
		for _, span := range t.state.Branches(t.state.Unread()) {
			begun.Ranges = append(begun.Ranges, t.state.Ranges(span)[0])
		}
		if err := t.record(keep, begun); err != nil {
			return err
		}
	}
	err := t.readLeft(ctx, keep, m, begun.Ranges, done)
	if errors.Is(err, opstream.ErrCorrupt) { // else no turn could ever end
		return t.record(keep, &op.PassDone{
			Ranges: begun.Ranges, RangeTokens: t.state.RangeTokens(begun.Ranges), EAS: t.state.EAS, Trigger: state.TriggerEnd,
			Cards: []string{}, NotWritten: []string{err.Error()},
		})
	}
	return err
}

// readLeft runs the pass over ranges of steps that were left.
func (t *Task) readLeft(ctx, keep context.Context, m anamnesis.Model, ranges []op.Range, done *op.PassDone) error {
	req := t.passRequest(ranges[len(ranges)-1], nil)
	req.Ranges, req.Over = ranges, true
	var reasons []string
	for i, r := range ranges {
		ops, err := t.ops(r)
		if err != nil {
			return err
		}
		req.Ops = append(req.Ops, ops...)
		ids := slices.Collect(t.state.StepsIn(ranges[i : i+1]))
		last := t.state.Steps.At(ids[len(ids)-1])
		req.Starts = append(req.Starts, t.state.Steps.Parent(ids[0]))
		req.From = last.ID
		if !slices.Contains(reasons, last.LeftBy) && last.LeftBy != "" {
			reasons = append(reasons, last.LeftBy)
		}
	}
	req.Reason = strings.Join(reasons[max(0, len(reasons)-maxFinalReasons):], "; ")
	return t.runPass(ctx, keep, m, req, done)
}
