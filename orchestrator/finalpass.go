package orchestrator

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sort"
	"strings"
	"time"

	"anamnesis/anamnesis"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
)

// triggerEnd is the trigger of the pass at a task's end: it writes cards and no
// block.
const triggerEnd = "end"

// What the pass at a task's end may cost: nobody waits for more than its cards.
const (
	finalPassCalls   = 4
	finalPassTimeout = 2 * time.Minute
)

// maxFinalReasons is how many reasons for leaving a path it is told.
const maxFinalReasons = 5

// learns reports whether there is something to read before the turn ends: a
// pass that has begun, or steps no pass has read where none was made for this
// answer.
func (s *State) learns() bool {
	return !s.Opened.NoFinalPass && (s.Learning != nil || !s.Turn.LeftRead && len(s.unread()) > 0)
}

// unread gives the discarded steps that no pass has read.
func (s *State) unread() []int {
	live := make([]bool, s.Steps.Len())
	for _, id := range s.Path(s.Current) {
		live[id] = true
	}
	var out []int
	for id := range live {
		if s.Steps.Ended(id) && !live[id] && !s.Steps.Read(id) {
			out = append(out, id)
		}
	}
	return out
}

// stepsIn gives the ended steps, by id, that begin in some ranges.
func (s *State) stepsIn(ranges []op.Range) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, r := range ranges {
			first := sort.Search(s.Steps.Len(), func(i int) bool { return s.Steps.First(i) >= r.First })
			for i := first; i < s.Steps.Len() && r.Contains(s.Steps.First(i)); i++ {
				if s.Steps.Ended(i) && !yield(i) {
					return
				}
			}
		}
	}
}

// learned books the pass at the end.
func (s *State) learned(p PassRecord) {
	for id := range s.stepsIn(p.Ranges) {
		s.Steps.mark(id, stepRead)
	}
	s.Learning, s.Turn.LeftRead = nil, true
	s.Turn.Learned = append(s.Turn.Learned, p.Cards...)
}

// learn reads the paths the task has left and writes cards, before the turn
// ends. The intent stands first: after a crash in between the model is not asked
// a second time, and the extractor writes in its place. The cards' ids are the
// same in either case. Where the stream is damaged in what has to be read for it
// no card is written, and the turn ends all the same.
func (t *Task) learn(ctx, keep context.Context) error {
	begun := t.state.Learning
	done := &op.PassDone{Trigger: triggerEnd}
	var m anamnesis.Model = passModel{t}
	if begun != nil {
		m, done.Fallback = nil, "the program stopped while the model was asked; it is not asked again"
	} else {
		begun = &op.PassBegun{Trigger: triggerEnd}
		for _, span := range t.state.Branches(t.state.unread()) {
			begun.Ranges = append(begun.Ranges, t.state.Ranges(span)[0])
		}
		if err := t.record(keep, begun); err != nil {
			return err
		}
	}
	err := t.readLeft(ctx, keep, m, begun.Ranges, done)
	if errors.Is(err, opstream.ErrCorrupt) { // else no turn could ever end
		return t.record(keep, &op.PassDone{
			Ranges: begun.Ranges, RangeTokens: t.state.rangeTokens(begun.Ranges), EAS: t.state.EAS, Trigger: triggerEnd,
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
		ids := slices.Collect(t.state.stepsIn(ranges[i : i+1]))
		last := t.state.Steps.At(ids[len(ids)-1])
		ends, err := t.treesOf(t.state.Steps.Parent(ids[0]), last.ID)
		if err != nil {
			return err
		}
		req.Starts = append(req.Starts, ends[0])
		req.From, req.WorldID = last.ID, ends[1]
		if !slices.Contains(reasons, last.LeftBy) && last.LeftBy != "" {
			reasons = append(reasons, last.LeftBy)
		}
	}
	req.TargetWorldID = req.Starts[0]
	req.Reason = strings.Join(reasons[max(0, len(reasons)-maxFinalReasons):], "; ")
	return t.runPass(ctx, keep, m, req, done)
}
