package state

import (
	"fmt"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state/steps"
)

// Marked is a checkpoint of the tool dmail: the end of a step.
type Marked struct {
	Step int
	Call string // id of the call that marked it
}

// contextOnly reports whether the request is a D-Mail that moves no files.
func (p *Pending) contextOnly() bool { return p.Mail != nil && !p.Mail.RestoreFiles }

// mailDelivered applies the end of a D-Mail that moved no files. It counts as a jump back to
// its checkpoint.
func (s *State) mailDelivered(seq uint64, b *op.MailDelivered) error {
	if b.To < 0 || b.To >= s.Steps.Len() || !s.Steps.Ended(b.To) {
		return fmt.Errorf("%w: a D-Mail to step %d, which has not ended", ErrStream, b.To)
	}
	s.takeEffect()
	s.Jump.Ticks = append(s.Jump.Ticks, Tick{b.To, seq})
	s.Jump.Pending = nil
	s.Totals.Mails++
	s.Turn.Answered = false
	return nil
}

// Marks are the checkpoints of the tool dmail, by their numbers.
type Marks []Marked

// Valid returns the numbers of the valid checkpoints above one.
func (m Marks) Valid(above int, tree *steps.Tree) []int {
	var known []int
	for number, mark := range m {
		if number > above && tree.Ended(mark.Step) {
			known = append(known, number)
		}
	}
	return known
}

// LeftBefore names the steps up to id that an earlier jump left, if the path does not pass
// through id: the context still shows them, without the later notice that they were left.
func (s *State) LeftBefore(id int) string {
	if s.Steps.OnPath(id, s.Current) {
		return ""
	}
	var left []int
	for _, on := range s.Steps.Path(id) {
		if !s.Steps.OnPath(on, s.Current) {
			left = append(left, on)
		}
	}
	return IDRanges(left)
}

// LaterCheckpoints names those after a D-Mail's checkpoint that it does not remove.
func (s *State) LaterCheckpoints(j op.JumpRequested) string {
	if j.Mail.Numbered {
		return IDRanges(s.Marked.Valid(j.Mail.Checkpoint, &s.Steps))
	}
	return op.Range{First: uint64(j.To + 1), Last: uint64(s.Steps.Next() - 1)}.String()
}

// IDRanges lists ascending numbers, consecutive ones as ranges.
func IDRanges(ids []int) string {
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
