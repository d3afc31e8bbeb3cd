package state

import (
	"slices"
	"strconv"

	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/state/steps"
)

// ByUndoneGuard decided that a call did not run, since a jump has undone it. A call is held
// back once: the same call again runs.
const ByUndoneGuard = "guard:undone"

const (
	maxUndone       = 256 // calls remembered; beyond, those of the oldest step are forgotten
	maxUndoneReason = 300 // bytes of a jump's reason that are quoted
)

// Undone is a call that began a path the agent left by a jump back. It is identified by the
// call and the state of the files.
type Undone struct {
	Step   int    // in which it ran
	Seq    uint64 // of its result
	Reason string // the jump's
}

// began records a call that may have changed the world, for a jump that leaves its step.
func began(st *steps.Step, c *CallState, seq uint64) {
	if c.World != "" && c.Changes {
		st.Began = append(st.Began, steps.Began{Key: undoneKey(steps.MarkOf(c.World), c.Name, c.Args), Seq: seq})
	}
}

// undo records which calls a jump back to step to has undone: those of the first step of the
// abandoned path that changed the world. Later calls ran in states that recur only along the
// same path.
func (s *State) undo(to int, reason string) {
	for _, id := range s.Discarded(to) {
		st := s.Steps.At(id)
		for _, b := range st.Began {
			if s.Undone == nil {
				s.Undone = make(map[loop.Key]Undone)
			}
			s.Undone[b.Key] = Undone{Step: id, Seq: b.Seq, Reason: reason[:min(len(reason), maxUndoneReason)]}
		}
		if len(st.Began) > 0 {
			break
		}
	}
	for len(s.Undone) > maxUndone {
		oldest := s.Current
		for _, u := range s.Undone {
			oldest = min(oldest, u.Step)
		}
		s.forgetUndone(func(u Undone) bool { return u.Step == oldest })
	}
}

// redo forgets calls whose step is on the path again.
func (s *State) redo() {
	if len(s.Undone) == 0 {
		return
	}
	on := s.Steps.PathSet(s.Current)
	s.forgetUndone(func(u Undone) bool { return on[u.Step] })
}

func (s *State) forgetUndone(gone func(Undone) bool) {
	for k, u := range s.Undone {
		if gone(u) {
			delete(s.Undone, k)
		}
	}
	if len(s.Undone) == 0 {
		s.Undone = nil
	}
}

// heldOnce records that the model was shown an undone call: the next time it runs.
func (s *State) heldOnce(id string) {
	if s.Reply == nil {
		return
	}
	if i := slices.IndexFunc(s.Reply.Calls, func(c CallState) bool { return c.ID == id }); i >= 0 {
		c := s.Reply.Calls[i].Call
		delete(s.Undone, undoneKey(s.worldNow(), c.Name, c.Args))
	}
	if len(s.Undone) == 0 {
		s.Undone = nil
	}
}

// UndoneCall reports whether a jump has undone the same call in the same state of the files.
func (s *State) UndoneCall(c loop.Call) (Undone, bool) {
	if c.World == "" {
		return Undone{}, false
	}
	u, ok := s.Undone[undoneKey(steps.MarkOf(c.World), c.Tool, c.Args)]
	return u, ok
}

// undoneKey is the key of a call in Undone.
func undoneKey(world steps.Mark, tool, args string) loop.Key {
	return loop.KeyOf(strconv.FormatUint(uint64(world), 16), tool, args)
}
