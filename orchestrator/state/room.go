package state

import (
	"fmt"
	"slices"

	"anamnesis/anamnesis/note"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state/projection"
)

// Limits of the context's size before old results are masked and old steps compacted.
const (
	windowPercent    = 70     // of the model's window
	easMultiple      = 4      // times the EAS, where that is less
	minContextTokens = 32_000 // but never less than this, where the window holds it
	targetPercent    = 60     // of the limit: what the context is made smaller to
	minMaskedTokens  = 64     // a smaller result stays: the line that masks it is hardly shorter
	keptSteps        = 2      // the newest steps are not compacted
	maxOverflows     = 4      // requests in a row that do not fit before the turn ends

	// What steps leave in the context is compacted when it is more than the EAS, but not below
	// this, nor below so many steps of the task's mean size: then about 26 of 28 tokens sent
	// repeat the request before.
	minStepsTokens     = 16_000
	meanSteps          = 28
	stepsTargetPercent = 10 // of that limit: what stays of the newest steps
)

// Pressure is the state of making the context smaller.
type Pressure struct {
	Target    int    // tokens the context is still to come down to; 0: none
	Seen      uint64 // the last operation that the model has answered to
	Overflows int    // requests in a row that did not fit the model's window
	Refusal   string `json:",omitempty"` // the provider's words about the last of them
	Window    int    // the model's window as it was known before them
	Asked     int    // tokens of the last request
	Compacted uint64 // the last operation that a pass that makes room took out
}

// LimitFor returns the size above which a context is made smaller: a part of the window, or
// less if the model's EAS is much smaller. window 0 means unknown.
func LimitFor(window, eas int) int {
	limit := max(easMultiple*eas, minContextTokens)
	if window > 0 {
		limit = min(limit, window/100*windowPercent+window%100*windowPercent/100)
	}
	return limit
}

// overflowed records that a request was too large for the model, despite the window in the
// table.
func (s *State) overflowed(refusal string) {
	tokens := s.Context.Tokens
	if s.Pressure.Overflows == 0 {
		s.Pressure.Window = s.Model.Window
	}
	s.Pressure.Overflows++
	s.Pressure.Refusal = refusal
	s.Pressure.Target = tokens * targetPercent / 100
	if s.Model.Window == 0 || tokens < s.Model.Window {
		s.Model.Window = max(tokens, 1) // 0 means unknown
	}
}

// relieve forgets, at a turn's end, the window that refusals showed if no smaller request was answered: the
// next turn tries again.
func (p *Pressure) relieve(m *Model) {
	if p.Overflows > 0 {
		m.Window, p.Overflows, p.Target = p.Window, 0, 0
	}
}

// nextForRoom decides how to make the context smaller, if it must be: results are masked,
// oldest first, in one batch; if that is not enough, the oldest steps are compacted. ok is false
// if the model can be asked.
func nextForRoom(s *State, lim Limits) (act Action, ok bool) {
	if steps := s.beyondLimit(); len(steps) > 0 {
		return Action{Kind: ActCompact, Steps: steps, Reason: "steps"}, true
	}
	// What every request has beside the context leaves less for it, but at least half.
	tokens, whole := s.Context.Tokens, LimitFor(s.Model.Window, s.Model.EAS)
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
		return s.tooLarge(fmt.Sprintf("also after %d times of making it smaller", maxOverflows)), true
	}
	why := "window"
	if hard {
		why = "overflow"
	}
	if seqs := s.maskable(tokens-target, hard); len(seqs) > 0 {
		return Action{Kind: ActMask, Seqs: seqs, Limit: limit, Target: target, Reason: why}, true
	}
	if steps := s.compactable(tokens-target, hard); len(steps) > 0 {
		return Action{Kind: ActCompact, Steps: steps, Target: target, Reason: why}, true
	}
	// A first refusal of a request that cannot be made smaller may be the mistake of a gateway.
	if s.Pressure.Overflows > 1 && tokens >= s.Model.Window {
		return s.tooLarge("and nothing in it can be masked or compacted"), true
	}
	return Action{}, false
}

// tooLarge ends the turn because the provider refuses every request for its size.
func (s *State) tooLarge(why string) Action {
	window := "unknown"
	if s.Pressure.Window > 0 {
		window = fmt.Sprintf("%d tokens", s.Pressure.Window)
	}
	return Action{Kind: ActEndTurn, Reason: "failed", Detail: fmt.Sprintf(
		"the request does not fit the model's context window, %s: the context has about %d tokens, the model's "+
			"window is %s, and the provider says %q. Continue with a model of a larger window or from an earlier "+
			"step; if the size is not the reason, the server or a gateway before it limits requests",
		why, s.Context.Tokens, window, s.Pressure.Refusal)}
}

// beyondLimit returns the steps to compact because what steps have left in the context, discarded
// ones included, is more than the model attends to. They go in one batch, so that the context
// is short for long after and its prefix is seldom sent anew.
func (s *State) beyondLimit() []int {
	limit := s.StepsLimit()
	tokens := 0
	for _, e := range s.Context.Entries {
		if e.Kind != projection.EntryWords && e.Step > 0 {
			tokens += e.Tok
		}
	}
	if tokens <= limit {
		return nil
	}
	return s.compactable(tokens-limit*stepsTargetPercent/100, false)
}

// StepsLimit returns how many tokens the steps of the task may leave in the context before the
// oldest are compacted.
func (s *State) StepsLimit() int {
	mean := s.Tokens(op.Range{First: 1, Last: s.Last}) / max(s.Steps.Next()-1, 1)
	return max(s.Model.EAS, minStepsTokens, meanSteps*mean)
}

// maskable returns the results whose masking frees that many tokens, oldest first, or all
// there are. It omits those the model has not seen yet, unless the provider refused the
// request for its length.
func (s *State) maskable(tokens int, hard bool) []uint64 {
	var seqs []uint64
	for _, unseen := range []bool{false, true} {
		if unseen && !hard {
			break
		}
		for _, e := range s.Context.Entries {
			if tokens <= 0 {
				return seqs
			}
			if e.Msg.Role != model.RoleTool || e.Masked != 0 || e.Tok-e.MarkTok < minMaskedTokens ||
				(e.Seq > s.Pressure.Seen) != unseen {
				continue
			}
			seqs = append(seqs, e.Seq)
			tokens -= e.Tok - e.MarkTok - minMaskedTokens/2
		}
	}
	return seqs
}

// Compactable returns the steps that can be compacted while the task rests: all but the newest, or
// none if a block would hardly be shorter.
func (s *State) Compactable() []int { return s.compactable(s.Context.Tokens, false) }

// compactable returns the oldest steps whose compaction frees that many tokens, or all that may be
// compacted; none if a block would hardly be shorter.
func (s *State) compactable(tokens int, hard bool) []int {
	end := s.Steps.Next() - keptSteps
	if hard {
		end = s.Steps.Next()
	}
	size := make([]int, max(end, 0))
	for _, e := range s.Context.Entries {
		if e.Kind != projection.EntryWords && 0 < e.Step && e.Step < end {
			size[e.Step] += e.Tok
		}
	}
	first := slices.IndexFunc(size, func(n int) bool { return n > 0 })
	if first < 0 {
		return nil
	}
	block := note.BlockCap(s.Model.EAS)
	freed := -block
	var steps []int
	for id := first; id < end && freed < tokens; id++ {
		// The model has not answered to these yet: it would never see them whole.
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
