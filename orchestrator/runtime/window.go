package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
)

// mask records the masking of results, each with the line that takes its place.
func (t *ledger) mask(ctx context.Context, act state.Action) error {
	b := &op.ContextMasked{Before: t.state.ContextTokens(), Limit: act.Limit, Target: act.Target, Why: act.Reason}
	b.After = b.Before
	shown := make(map[uint64]int, len(act.Seqs)) // tokens of each result
	for _, e := range t.state.Entries() {
		if e.Msg.Role == model.RoleTool {
			shown[e.Seq] = e.Tok - e.MarkTok
		}
	}
	for _, seq := range act.Seqs {
		ops, err := t.ops(op.Range{First: seq, Last: seq})
		if err != nil {
			return err
		}
		r, ok := ops[0].Body.(*op.ToolReturned)
		if !ok {
			return fmt.Errorf("%w: op %d is in the context as a result and is a %s", state.ErrStream, seq, ops[0].Kind())
		}
		line := notice.MaskLine(seq, r)
		tok := t.journal.Count(line)
		b.Results = append(b.Results, op.MaskedResult{Seq: seq, Line: line, Tok: tok})
		if n, ok := shown[seq]; ok {
			b.After -= n - tok
		}
	}
	return t.record(ctx, b)
}

// foldOldest runs a pass over the oldest steps, whether or not a jump has left
// them, and puts its block in their place. Their work stays done.
func (t *Task) foldOldest(ctx, keep context.Context, act state.Action) error {
	first, last := t.state.Steps.At(act.Steps[0]), t.state.Steps.At(act.Steps[len(act.Steps)-1])
	r := op.Range{First: first.First, Last: last.Last}
	ops, err := t.ops(r)
	if err != nil {
		return err
	}
	// What an earlier pass stands for is in its block.
	ops = slices.DeleteFunc(ops, func(o op.Op) bool {
		return t.state.Steps.Folded(o.Step) && o.Kind() != op.KindPassDone
	})
	var words []op.Op
	on := t.state.PathSet(t.state.Current)
	for _, o := range ops {
		// A jump has carried over what was said in the steps it left.
		if on[o.Step] {
			words = append(words, o)
		}
	}
	req := t.passRequest(r, ops)
	req.From, req.To, req.Starts = first.ID, last.ID, []int{first.Parent}
	req.Standing, req.Left = true, t.leftOf(act.Steps)
	return t.runPass(ctx, keep, passModel{t}, req, &op.PassDone{Trigger: state.TriggerWindow, Words: notice.WordsOf(words, nil, notice.WordsOfFolded, t.counter.Count), Target: act.Target})
}

// ErrNothingToFold: the context holds no steps that are old and long enough to be folded.
var ErrNothingToFold = errors.New("nothing to fold: the context holds no older steps that are longer than the block in their place would be")

// Compact folds all steps but the newest into a block, whatever the size of the context,
// and returns the tokens of the context before and after. It must not be called while Run
// runs.
func (t *Task) Compact(ctx context.Context) (before, after int, err error) {
	if err := t.settle(); err != nil {
		return 0, 0, err
	}
	before = t.state.ContextTokens()
	steps := t.state.Foldable()
	if len(steps) == 0 {
		return before, before, ErrNothingToFold
	}
	err = t.foldOldest(ctx, context.WithoutCancel(ctx), state.Action{Steps: steps})
	return before, t.state.ContextTokens(), err
}

// leftOf names those of some steps that a jump has left.
func (t *ledger) leftOf(steps []int) string {
	var left []int
	on := t.state.PathSet(t.state.Current)
	for _, id := range steps {
		if !on[id] {
			left = append(left, id)
		}
	}
	return state.IDRanges(left)
}
