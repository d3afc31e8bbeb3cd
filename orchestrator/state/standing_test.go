package state

import (
	"errors"
	"fmt"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state/steps"
)

// TestStanding: a task waits for its user only if nothing of a turn, a jump or a restore is left to do.
func TestStanding(t *testing.T) {
	done := Turn{End: &op.TurnEnded{Reason: "done"}}
	for name, tt := range map[string]struct {
		set        func(s *State)
		live, dead string
	}{
		"ended":               {func(s *State) { s.Turn = done }, "open", "done"},
		"not begun":           {func(*State) {}, "running", "interrupted"},
		"in a turn":           {func(s *State) { s.Turn = done; s.Turn.Open = true }, "running", "interrupted"},
		"a jump is under way": {func(s *State) { s.Turn = done; s.Jump.Intended = new(Jumping) }, "running", "interrupted"},
		"a jump is requested": {func(s *State) { s.Turn = done; s.Jump.Pending = new(Pending) }, "running", "interrupted"},
		"in a restore":        {func(s *State) { s.Turn = done; s.World.Restoring = new(op.RestoreIntended) }, "running", "interrupted"},
	} {
		s := new(State)
		tt.set(s)
		if live, dead := s.Standing(true), s.Standing(false); live != tt.live || dead != tt.dead {
			t.Errorf("%s: %s with a process and %s without; want %s and %s", name, live, dead, tt.live, tt.dead)
		}
	}
}

// TestCanJump: a jump leads to the saved end of a step, and not to where the task is.
func TestCanJump(t *testing.T) {
	at := func(set func(s *State)) *State {
		s := &State{Current: 2}
		for id := range 4 { // step 3 is under way
			s.Steps.Add(
				steps.Step{ID: id, Parent: max(id-1, 0), Ended: id < 3, Saved: id != 1 && id < 3, NoCheckpoint: "full"})
		}
		if set != nil {
			set(s)
		}
		return s
	}
	for name, tt := range map[string]struct {
		s   *State
		to  int
		git bool
		err error
	}{
		"back":                     {s: at(nil), to: 0},
		"not saved":                {s: at(nil), to: 1, err: ErrNoStep},
		"below all":                {s: at(nil), to: -1, err: ErrNoStep},
		"under way":                {s: at(nil), to: 3, err: ErrNoStep},
		"beyond all":               {s: at(nil), to: 4, err: ErrNoStep},
		"the current one":          {s: at(nil), to: 2, err: ErrNotJumped},
		"the current one, git":     {s: at(nil), to: 2, git: true},
		"the current one, a reply": {s: at(func(s *State) { s.Reply = new(Reply) }), to: 2},
		"the current one, a jump":  {s: at(func(s *State) { s.Jump.Intended = new(Jumping) }), to: 2},
	} {
		if err := tt.s.CanJump(tt.to, tt.git); !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	j := &Jump{Ticks: []Tick{{To: 1, Seq: 5}, {To: 2, Seq: 6}, {To: 1, Seq: 9}}}
	if got := fmt.Sprint(j.Backward(1)); got != "[5 9]" || j.Backward(3) != nil {
		t.Errorf("jumps back to step 1: %s", got)
	}
}
