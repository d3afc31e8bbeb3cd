package state

import (
	"fmt"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state/steps"
)

// Goal is what a task is to reach, and how it stood each time its checks ran.
type Goal struct {
	op.Goal
	Runs []GoalRun `json:",omitempty"`
	// Unmet counts the checks in a row that failed after the agent had said that it was done, with the
	// same files.
	Unmet int `json:",omitempty"`
}

// GoalRun is one run of a goal's checks.
type GoalRun struct {
	Seq    uint64
	Step   int
	World  steps.Mark // of the files they ran on
	Passed bool
	Score  int // tests that passed
	Of     int // tests
	Asked  bool
	Fast   bool // it may run after any step
}

const (
	// fastCheck is how long a check may take that also runs after steps that change files.
	fastCheck = 10_000 // ms
	// MaxUnmet is how often the agent may say that it is done while the check fails and no file changes.
	MaxUnmet = 4
)

// check applies a run of the checks.
func (s *State) check(seq uint64, b *op.CheckRan) {
	run := GoalRun{Seq: seq, Step: s.Current, World: s.Steps.At(s.Current).World, Passed: b.Passed, Asked: b.Asked, Fast: b.Millis < fastCheck}
	run.Score, run.Of = b.Score()
	if b.Asked && !b.Passed {
		if last := s.Goal.last(); last != nil && last.World == run.World && s.Goal.Unmet > 0 {
			s.Goal.Unmet++
		} else {
			s.Goal.Unmet = 1
		}
		s.Turn.Answered = false
	}
	s.Goal.Runs = append(s.Goal.Runs, run)
}

func (g *Goal) last() *GoalRun {
	if len(g.Runs) == 0 {
		return nil
	}
	return &g.Runs[len(g.Runs)-1]
}

// checkDue reports whether the goal's checks have to run now. asked: the agent has said that it is done;
// ends: the turn is about to end for another reason.
func (s *State) checkDue(asked, ends bool) bool {
	last := s.Goal.last()
	at := s.Steps.At(s.Current)
	switch {
	case len(s.Goal.Until) == 0 || !at.Saved:
		return false
	case last == nil:
		return true
	case asked:
		return last.Seq <= s.Turn.AskedAt
	}
	return last.World != at.World && (ends || last.Fast)
}

// best returns the step to which a turn goes back that ends without its goal: the one with the best check, if
// that was better than the last check.
func (s *State) best() (run GoalRun, ok bool) {
	last := s.Goal.last()
	if last == nil || last.Passed || s.Goal.KeepLast {
		return run, false
	}
	best := *last
	for _, r := range s.Goal.Runs {
		if r.Passed && !best.Passed || r.Passed == best.Passed && r.Score > best.Score {
			best = r
		}
	}
	at := s.Steps.At(best.Step)
	return best, best.Seq != last.Seq && at.Saved && at.World != s.Steps.At(s.Current).World && last.World == s.Steps.At(s.Current).World
}

// withGoal is what a turn does instead of ending without its goal: a last check, then the way back to the step
// with the best one.
func (s *State) withGoal(act Action, lim Limits) Action {
	if act.Kind != ActEndTurn || act.Reason == "done" || s.Jump.Pending != nil {
		return act
	}
	if s.checkDue(false, true) && !lim.TimeUp {
		return Action{Kind: ActCheck}
	}
	if run, ok := s.best(); ok {
		return Action{Kind: ActReturn, Step: run.Step, Detail: fmt.Sprintf("the check was best at step %d: %d of %d passed", run.Step, run.Score, run.Of)}
	}
	return act
}
