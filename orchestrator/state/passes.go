package state

import (
	"cmp"
	"strings"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state/projection"
	"anamnesis/orchestrator/state/steps"
)

// learns reports whether a pass is due before the turn ends: one that has begun, or one over
// unread steps or pairs if none was made for this answer.
func (s *State) learns() bool {
	due := s.Turn.Pairs.Last > 0 || len(s.Steps.Unread(s.Current)) > 0
	return !s.Opened.NoFinalPass && (s.Learning != nil || !s.Turn.LeftRead && due)
}

// learned applies the pass at the end.
func (s *State) learned(p projection.Pass) {
	for id := range s.Steps.In(p.Ranges) {
		s.Steps.Edit(id, func(st *steps.Step) { st.Read = true })
	}
	s.Learning, s.Turn.LeftRead, s.Turn.Pairs = nil, true, op.Range{}
	s.Turn.Learned = append(s.Turn.Learned, p.Cards...)
}

// Carried reports whether the context holds the user's words of an operation separately: a
// pass that makes room or a D-Mail removed it and carried its words over.
func (s *State) Carried(o op.Op) bool {
	return o.Seq <= s.Pressure.Compacted || s.Steps.At(o.Step).Carried
}

// PassFor is the rule. It returns which of the steps that a jump discards, or of all discarded
// steps, must be compacted, and why; no trigger means none.
func (s *State) PassFor(to int, discarded []int, forced bool) (trigger string, steps []int) {
	fresh, raw := s.Steps.Uncompacted(discarded), s.Steps.Raw(to)
	jumpTokens, rawTokens := s.StepTokens(fresh), s.StepTokens(raw)
	steps = fresh
	switch {
	case note.Overflows(jumpTokens, 0, s.Model.EAS):
		trigger = op.TriggerJump
		rawTokens -= jumpTokens // the other raw steps
	case forced:
		trigger = op.TriggerUser
	}
	if note.Overflows(0, rawTokens, s.Model.EAS) {
		trigger, steps = op.TriggerCumulative, raw
	}
	return trigger, steps
}

func (s *State) StepTokens(steps []int) int { return s.RangeTokens(s.Steps.Ranges(steps)) }

// PlannedPass is an anamnesis pass that a jump would make.
type PlannedPass struct {
	Ops     op.Range `json:"ops"`
	Tokens  int      `json:"tokens"`
	Trigger string   `json:"trigger"` // as op.PassDone has it
}

// PlannedPasses lists the passes that a jump would make.
func (s *State) PlannedPasses(to int, discarded []int, forced bool) []PlannedPass {
	out := []PlannedPass{}
	trigger, steps := s.PassFor(to, discarded, forced)
	if trigger == "" {
		return out
	}
	for _, span := range s.Steps.Branches(steps) {
		r := s.Steps.Ranges(span)[0]
		out = append(out, PlannedPass{Ops: r, Tokens: s.RangeTokens([]op.Range{r}), Trigger: trigger})
	}
	return out
}

// Settled reports whether an operation belongs to a step that a jump has left or a pass
// replaces: the user's words in it were then carried over.
func (s *State) Settled(o op.Op) bool {
	return s.Steps.At(o.Step).Compacted || !s.Steps.OnPath(o.Step, s.Current)
}

// Repairs is the search for what made a failed command succeed.
type Repairs struct {
	FailedAt uint64 `json:",omitempty"` // the reply of the first command that failed since the last search, 0: none did
	Worked   bool   `json:",omitempty"` // a later command succeeded
}

// Due reports whether a command failed, and a later one succeeded, since the last search.
func (r Repairs) Due() bool { return r.FailedAt > 0 && r.Worked }

// recordResult records the end of a command. first is the first operation of the command's reply.
func (r *Repairs) recordResult(first uint64, c *CallState, b *op.ToolReturned) {
	if b.Exit == nil || b.Refused || b.Unknown {
		return
	}
	failed := *b.Exit != 0
	if !failed && strings.Contains(c.Args, "|") { // a filter may have run last
		_, failed = failure.Read(failure.Output{Command: shell.Command(c.Args), Text: cmp.Or(b.Stdout, b.Text),
			Stderr: b.Stderr, HasExit: true})
	}
	switch {
	case failed && r.FailedAt == 0:
		r.FailedAt = first
	case !failed && r.FailedAt > 0:
		r.Worked = true
	}
}
