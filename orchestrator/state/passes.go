package state

import (
	"cmp"
	"slices"
	"strings"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state/projection"
	"anamnesis/orchestrator/state/steps"
)

// learns reports whether a pass is due before the turn ends: one that has begun, or one over
// unread steps if none was made for this answer.
func (s *State) learns() bool {
	return !s.Opened.NoFinalPass && (s.Learning != nil || !s.Turn.LeftRead && len(s.Unread()) > 0)
}

// Unread returns the discarded steps that no pass has read.
func (s *State) Unread() []int {
	live := s.Steps.PathSet(s.Current)
	var out []int
	for id := range live {
		if s.Steps.Ended(id) && !live[id] && !s.Steps.Read(id) {
			out = append(out, id)
		}
	}
	return out
}

// learned applies the pass at the end.
func (s *State) learned(p projection.Pass) {
	for id := range s.Steps.In(p.Ranges) {
		s.Steps.Mark(id, steps.FlagRead)
	}
	s.Learning, s.Turn.LeftRead = nil, true
	s.Turn.Learned = append(s.Turn.Learned, p.Cards...)
}

// Carried reports whether the context holds the user's words of an operation separately: a
// pass for want of room or a D-Mail removed it and carried its words over.
func (s *State) Carried(o op.Op) bool {
	return o.Seq <= s.Pressure.Compacted || s.Steps.Carried(o.Step)
}

// PassFor is the rule. It returns which of the steps that a jump discards, or of all discarded
// steps, must be compacted, and why; no trigger means none.
func (s *State) PassFor(to int, discarded []int, forced bool) (trigger string, steps []int) {
	fresh, raw := s.Uncompacted(discarded), s.RawSteps(to)
	jumpTokens, rawTokens := s.StepTokens(fresh), s.StepTokens(raw)
	steps = fresh
	switch {
	case forced:
		trigger = "person"
	case note.Overflows(jumpTokens, 0, s.EAS):
		trigger = "jump"
		rawTokens -= jumpTokens // the other raw steps
	}
	if note.Overflows(0, rawTokens, s.EAS) {
		trigger, steps = "cumulative", raw
	}
	return trigger, steps
}

func (s *State) StepTokens(steps []int) int { return s.RangeTokens(s.Steps.Ranges(steps)) }

func (s *State) Uncompacted(steps []int) []int {
	return slices.DeleteFunc(slices.Clone(steps), func(id int) bool { return s.Steps.Compacted(id) })
}

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
	return s.Steps.Compacted(o.Step) || !s.Steps.OnPath(o.Step, s.Current)
}

// repairable reports whether a command failed, and a later one succeeded, since the last
// search for repairs.
func (s *State) repairable() bool {
	return !s.Opened.NoFinalPass && s.FailedAt > 0 && s.Worked
}

// commandEnded records the end of a command for repairable. first is the first operation of
// the command's reply.
func (s *State) commandEnded(first uint64, c *CallState, b *op.ToolReturned) {
	if b.Exit == nil || b.Refused || b.Unknown {
		return
	}
	failed := *b.Exit != 0
	if !failed && strings.Contains(c.Args, "|") { // a filter may have run last
		_, failed = failure.Read(failure.Output{Command: shell.Command(c.Args), Text: cmp.Or(b.Stdout, b.Text), Stderr: b.Stderr, HasExit: true})
	}
	switch {
	case failed && s.FailedAt == 0:
		s.FailedAt = first
	case !failed && s.FailedAt > 0:
		s.Worked = true
	}
}
