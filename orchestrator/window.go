package orchestrator

import (
	"context"
	"fmt"
	"slices"

	"anamnesis/anamnesis"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// How large the context may grow before old results are masked and old steps
// folded.
const (
	windowPercent    = 70     // of the model's window
	easMultiple      = 4      // times the EAS, where that is less
	minContextTokens = 32_000 // but never less than this, where the window holds it
	targetPercent    = 60     // of the limit: what the context is made smaller to
	minMaskedTokens  = 64     // a result of fewer stays: the line in its place is hardly shorter
	keptSteps        = 2      // the newest steps are not folded
	maxOverflows     = 4      // requests in a row that do not fit before the turn ends
)

const triggerWindow = "window"

// Pressure is what the context's size asks for.
type Pressure struct {
	Target    int    // tokens the context is still to come down to; 0: none
	Seen      uint64 // the last operation that the model has answered to
	Overflows int    // requests in a row that did not fit the model's window
	Folded    uint64 // the last operation that a pass for want of room took out
}

// limitFor is the size above which a context is made smaller: a part of the
// window, or less where the model does not attend to as much. window 0 is one
// nobody knows.
func limitFor(window, eas int) int {
	limit := max(easMultiple*eas, minContextTokens)
	if window > 0 {
		limit = min(limit, window/100*windowPercent+window%100*windowPercent/100)
	}
	return limit
}

// overflowed notes that a request was too large for the model, whatever the
// table says of its window.
func (s *State) overflowed() {
	tokens := s.contextTokens()
	s.Pressure.Overflows++
	s.Pressure.Target = tokens * targetPercent / 100
	if s.Window == 0 || tokens < s.Window {
		s.Window = max(tokens, 1)
	}
}

func (s *State) masked(b *op.ContextMasked) {
	s.Totals.Masked += len(b.Results)
	s.Pressure.Target = b.Target
}

// nextForRoom decides what makes the context smaller, when it has to be:
// results are masked, oldest first, in one batch; where that is not enough, the
// oldest steps are folded. ok is false when the model can be asked.
func nextForRoom(s *State, lim Limits) (act Action, ok bool) {
	// What every request carries beside the context leaves less for it, but
	// never less than half, whatever the tools take.
	tokens, whole := s.contextTokens(), limitFor(s.Window, s.EAS)
	limit := max(whole-lim.ToolTokens, whole/2)
	target := s.Pressure.Target
	if target == 0 {
		if tokens <= limit {
			return Action{}, false
		}
		target = max(whole*targetPercent/100-lim.ToolTokens, limit*targetPercent/100)
	}
	if tokens <= target {
		return Action{}, false
	}
	hard := s.Pressure.Overflows > 0
	if s.Pressure.Overflows > maxOverflows {
		return Action{Kind: ActEndTurn, Reason: "failed", Detail: fmt.Sprintf(
			"the request does not fit the model's context window, also after %d times of making it smaller", maxOverflows)}, true
	}
	why := "window"
	if hard {
		why = "overflow"
	}
	if seqs := s.maskable(tokens-target, hard); len(seqs) > 0 {
		return Action{Kind: ActMask, Seqs: seqs, Limit: limit, Target: target, Reason: why}, true
	}
	if steps := s.foldable(tokens-target, hard); len(steps) > 0 {
		return Action{Kind: ActFoldOldest, Steps: steps, Target: target, Reason: why}, true
	}
	if hard && tokens >= s.Window {
		return Action{Kind: ActEndTurn, Reason: "failed",
			Detail: "the request does not fit the model's context window, and nothing in it can be masked or folded"}, true
	}
	return Action{}, false
}

// maskable gives the results whose masking frees so many tokens, oldest first,
// or all there are. Those the model has not seen yet are left alone, unless
// the provider has refused the request for its length.
func (s *State) maskable(tokens int, hard bool) []uint64 {
	var seqs []uint64
	for _, unseen := range []bool{false, true} {
		if unseen && !hard {
			break
		}
		for _, e := range s.projection.entries {
			if tokens <= 0 {
				return seqs
			}
			if e.msg.Role != model.RoleTool || e.masked != 0 || e.tok-e.mark.tok < minMaskedTokens || (e.seq > s.Pressure.Seen) != unseen {
				continue
			}
			seqs = append(seqs, e.seq)
			tokens -= e.tok - e.mark.tok - minMaskedTokens/2
		}
	}
	return seqs
}

// foldable gives the oldest steps whose folding frees so many tokens, or all
// that may be folded; none where a block would hardly be shorter than they are.
func (s *State) foldable(tokens int, hard bool) []int {
	end := s.NextStep() - keptSteps
	if hard {
		end = s.NextStep()
	}
	size := make([]int, max(end, 0))
	for _, e := range s.projection.entries {
		if e.kind != entryWords && 0 < e.step && e.step < end {
			size[e.step] += e.tok
		}
	}
	first := slices.IndexFunc(size, func(n int) bool { return n > 0 })
	if first < 0 {
		return nil
	}
	block := anamnesis.BlockCap(s.EAS)
	freed := -block
	var steps []int
	for id := first; id < end && freed < tokens; id++ {
		if !hard && s.Steps.At(id).Last > s.Pressure.Seen {
			break
		}
		steps = append(steps, id)
		freed += size[id]
	}
	if freed < block {
		return nil
	}
	return steps
}

// mask records the masking of results, each with the line that takes its place.
func (t *Task) mask(ctx context.Context, act Action) error {
	b := &op.ContextMasked{Before: t.state.contextTokens(), Limit: act.Limit, Target: act.Target, Why: act.Reason}
	b.After = b.Before
	want := make(map[uint64]*entry, len(act.Seqs))
	for i := range t.state.projection.entries {
		if e := &t.state.projection.entries[i]; e.msg.Role == model.RoleTool {
			want[e.seq] = e
		}
	}
	for _, seq := range act.Seqs {
		ops, err := t.ops(op.Range{First: seq, Last: seq})
		if err != nil {
			return err
		}
		r, ok := ops[0].Body.(*op.ToolReturned)
		if !ok {
			return fmt.Errorf("%w: op %d is in the context as a result and is a %s", ErrStream, seq, kindOf(ops[0]))
		}
		line := maskLine(seq, r)
		tok := t.countText(line)
		b.Results = append(b.Results, op.MaskedResult{Seq: seq, Line: line, Tok: tok})
		if e := want[seq]; e != nil {
			b.After -= e.tok - e.mark.tok - tok
		}
	}
	return t.record(ctx, b)
}

// maskLine is what stands in the place of a masked result.
func maskLine(seq uint64, r *op.ToolReturned) string {
	how := ""
	switch {
	case r.Unknown:
		how = ", outcome unknown"
	case r.Refused:
		how = ", refused"
	case r.Exit != nil:
		how = fmt.Sprintf(", exit %d", *r.Exit)
	case r.IsError:
		how = ", error"
	}
	return fmt.Sprintf("op %d: %s, %s%s (taken out for want of room; recall with op %d opens it)", seq, r.Name, sizeText(len(r.Text)), how, seq)
}

// sizeText is a size as people read it.
func sizeText(bytes int) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%d KiB", (bytes+512)/1024)
}

// foldOldest runs a pass over the oldest steps, whether or not a jump has left
// them, and puts its block in their place. Their work stays done.
func (t *Task) foldOldest(ctx, keep context.Context, act Action) error {
	first, last := t.state.Steps.At(act.Steps[0]), t.state.Steps.At(act.Steps[len(act.Steps)-1])
	r := op.Range{First: first.First, Last: last.Last}
	ops, err := t.ops(r)
	if err != nil {
		return err
	}
	// What an earlier pass stands for is in its block.
	ops = slices.DeleteFunc(ops, func(o op.Op) bool {
		return t.state.Steps.Folded(o.Step) && kindOf(o) != op.KindPassDone
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
	trees, err := t.treesOf(first.Parent, last.ID)
	if err != nil {
		return err
	}
	req.From, req.To, req.TargetWorldID, req.WorldID = first.ID, last.ID, trees[0], trees[1]
	req.Standing, req.Left = true, t.leftOf(act.Steps)
	return t.runPass(ctx, keep, passModel{t}, req, &op.PassDone{Trigger: triggerWindow, Words: wordsOf(words, nil, wordsOfFolded, t.counter.Count), Target: act.Target})
}

// leftOf names those of some steps that a jump has left.
func (t *Task) leftOf(steps []int) string {
	var left []int
	on := t.state.PathSet(t.state.Current)
	for _, id := range steps {
		if !on[id] {
			left = append(left, id)
		}
	}
	return idRanges(left)
}

// idRanges names ascending numbers, those in a row by their ends.
func idRanges(ids []int) string {
	s := ""
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if i > 0 {
			s += ", "
		}
		s += op.Range{First: uint64(ids[i]), Last: uint64(ids[j])}.String()
		i = j + 1
	}
	return s
}
