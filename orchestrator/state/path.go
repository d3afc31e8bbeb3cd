package state

import (
	"iter"
)

// LeftFrom yields the steps that began an attempt at step to which a jump has
// left, oldest first, without the one that leads to step from.
func (s *State) LeftFrom(to, from int) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for id := range s.Steps.Len() {
			if id == to || s.Steps.Parent(id) != to || !s.Steps.Ended(id) || s.OnPath(id, from) {
				continue
			}
			if st := s.Steps.At(id); st.LeftBy != "" && !yield(st) {
				return
			}
		}
	}
}
