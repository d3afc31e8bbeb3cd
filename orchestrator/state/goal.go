package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state/steps"
)

// Goal is what a task is to reach, and how it stood each time its checks ran.
type Goal struct {
	op.Goal
	Runs []GoalRun `json:",omitempty"`
	// Named are the most tests that a run of each command has named.
	Named map[string]int `json:",omitempty"`
	// InWorld and Changed are what the runs said of the kind; see op.CheckRan.
	InWorld string   `json:",omitempty"`
	Changed []string `json:",omitempty"`
	// Unmet counts the checks in a row that failed after the agent had said that it was done, with the
	// same files.
	Unmet int `json:",omitempty"`
	// Stale counts the checks that failed since the last better one or strategy, Strategies the strategies since
	// the last better one.
	Stale      int  `json:",omitempty"`
	Strategies int  `json:",omitempty"`
	Meant      bool `json:",omitempty"` // the user spoke after the first check
	Back       bool `json:",omitempty"` // after a strategy: the task goes back to the best step first
}

// GoalRun is one run of a goal's checks.
type GoalRun struct {
	Seq    uint64
	Step   int
	World  steps.Mark // of the files they ran on
	Passed bool
	Rating op.Rating
	Asked  bool
	Fast   bool // it may run after any step
}

// Better reports whether a run was better than another.
func (r GoalRun) Better(than GoalRun) bool {
	return r.Passed && !than.Passed || r.Passed == than.Passed && r.Rating.Better(than.Rating)
}

const (
	// fastCheck is how long a check may take that also runs after steps that change files.
	fastCheck = 10_000 // ms
	// MaxUnmet is how often the agent may say that it is done while the check fails and no file changes.
	MaxUnmet = 4
	// maxStale is how many checks may be no better before the Reflect-Agent is asked. A change of several files
	// has that many steps.
	maxStale = 12
	// maxStrategies is how often it is asked without a better check.
	maxStrategies = 3
)

func (s *State) check(seq uint64, b *op.CheckRan) {
	run := GoalRun{
		Seq: seq, Step: s.Current, World: s.Steps.At(s.Current).World, Passed: b.Passed, Asked: b.Asked,
		Fast: b.Millis < fastCheck, Rating: b.Rated(),
	}
	s.Goal.InWorld = cmp.Or(b.InWorld, s.Goal.InWorld)
	s.Goal.Changed = WithNames(s.Goal.Changed, b.Changed)
	for _, c := range b.Checks {
		s.Goal.Named = put(s.Goal.Named, c.Command, max(s.Goal.Named[c.Command], c.Named()))
	}
	if b.Asked && !b.Passed {
		if last := s.Goal.last(); last != nil && last.World != run.World {
			s.Goal.Unmet = 0
		}
		s.Goal.Unmet++
		s.Turn.Answered = false
	}
	switch {
	case len(s.Goal.Runs) == 0 || run.Better(s.Goal.Best()):
		s.Goal.Stale, s.Goal.Strategies = 0, 0
	case !b.Passed:
		s.Goal.Stale++
	}
	s.Goal.Runs = append(s.Goal.Runs, run)
}

// planned applies the end of a reflection on why the checks get no better.
func (s *State) planned(calls int, usage op.Usage) {
	s.Totals.Reflections += calls
	s.Totals.Usage = s.Totals.Usage.Plus(usage)
	s.Outage = nil
	g := &s.Goal
	g.Stale, g.Unmet, g.Strategies = 0, 0, g.Strategies+1
	_, g.Back = s.best()
}

// stuck is what a turn does whose check passes before anything was done: it asks the user. If its checks get no better
// it asks for a strategy, and goes back to the step with the best check with it.
func (s *State) stuck(lim Limits) (act Action, ok bool) {
	g := &s.Goal
	run, better := s.best()
	switch {
	case lim.Present && !g.Meant && len(g.Runs) == 1 && g.Runs[0].Passed && !g.Runs[0].Asked:
		const passes = "the check passes already, before anything was done"
		question := strings.ToUpper(passes[:1]) + passes[1:] + ". Is that meant? (no ends the turn)"
		return Action{Kind: ActAskUser, Question: question, Refusable: true, Reason: "stuck", Detail: passes}, true
	case g.Back && better:
		why := fmt.Sprintf("the checks got no better; the check was best at step %d: %s", run.Step, run.Rating)
		return Action{Kind: ActReturn, Step: run.Step, Detail: why}, true
	case g.Strategies < maxStrategies && (g.Stale >= maxStale || g.Unmet >= MaxUnmet):
		if !better { // it goes on from here
			run.Step = s.Current
		}
		return Action{Kind: ActReflect, Step: run.Step, Reason: op.ByGoal}, true
	case g.Unmet >= MaxUnmet:
		return endTurn("stuck", "the check failed %d times in a row although nothing had changed", g.Unmet), true
	}
	return Action{}, false
}

func (g *Goal) last() *GoalRun {
	if len(g.Runs) == 0 {
		return nil
	}
	return &g.Runs[len(g.Runs)-1]
}

// fast reports whether the checks may run after any step.
func (g *Goal) fast() bool { return len(g.Runs) > 0 && g.last().Fast }

// checkDue reports whether the goal's checks have to run now. asked: the agent has said that it is done;
// ends: the turn is about to end for another reason.
func (s *State) checkDue(asked, ends bool) bool {
	last := s.Goal.last()
	at := s.Steps.At(s.Current)
	switch {
	case len(s.Goal.Until) == 0 || !at.Saved || s.Grants.Plan: // a plan is no attempt
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
	best := s.Goal.Best()
	if !best.Better(*last) {
		best = *last
	}
	at := s.Steps.At(best.Step)
	return best, best.Seq != last.Seq && at.Saved && at.World != s.Steps.At(s.Current).World &&
		last.World == s.Steps.At(s.Current).World
}

// LastCheck is the reason of a check that is short, since the time is over: it says where the task ends.
const LastCheck = "last"

// withGoal is what a turn does instead of ending without its goal: a last check, then the way back to the step
// with the best one. A check that is slow has no time left when the time is over.
func (s *State) withGoal(act Action, lim Limits) Action {
	if act.Kind != ActEndTurn || act.Reason == "done" || s.Jump.Pending != nil || s.Grants.Plan {
		return act
	}
	switch due := s.checkDue(false, true); {
	case due && !lim.TimeUp:
		return Action{Kind: ActCheck}
	case due && s.Goal.fast():
		return Action{Kind: ActCheck, Reason: LastCheck}
	}
	if run, ok := s.best(); ok {
		why := fmt.Sprintf("the check was best at step %d: %s", run.Step, run.Rating)
		return Action{Kind: ActReturn, Step: run.Step, Detail: why}
	}
	return act
}

// Ending is what is left to do in a turn that ends for a reason that the state does not hold: the model's fault, or
// an interruption. ActIdle: nothing.
func Ending(s *State, lim Limits) Action {
	act := Action{Kind: ActEndTurn}
	switch p := s.Jump.Pending; {
	case s.Jump.Intended != nil, p != nil && p.By == op.ByGoal:
		return next(s, lim)
	case p == nil && s.Reply == nil && s.Turn.Open:
		act = s.withGoal(act, lim)
	}
	if act.Kind == ActEndTurn {
		return Action{Kind: ActIdle}
	}
	return act
}

// maxCurve bounds the characters of a curve.
const maxCurve = 60

// Curve draws how good the runs were, and says the first, the best and the last of them; empty without runs. Of
// more runs than the line has characters, one shows the best of its share.
func (g *Goal) Curve() (line, text string) {
	n := len(g.Runs)
	if n == 0 {
		return "", ""
	}
	levels, heights := []rune("▁▂▃▄▅▆▇█"), g.Heights()
	for i, width := 0, min(n, maxCurve); i < width; i++ {
		height := slices.Max(heights[i*n/width : (i+1)*n/width])
		line += string(levels[int(height*float64(len(levels)-1)+0.5)])
	}
	first, best, last := g.Runs[0], g.Best(), g.last()
	text = fmt.Sprintf("%s at step %d", first.Rating, first.Step)
	if best.Seq != first.Seq && best.Seq != last.Seq {
		text += fmt.Sprintf(", best %s at step %d", best.Rating, best.Step)
	}
	if n > 1 {
		text += fmt.Sprintf(", last %s at step %d", last.Rating, last.Step)
	}
	return line, text
}

// Best returns the best run, of equal ones the last: it keeps most of the work. There must be one.
func (g *Goal) Best() GoalRun {
	best := g.Runs[0]
	for _, r := range g.Runs[1:] {
		if !best.Better(r) {
			best = r
		}
	}
	return best
}

// Heights are how good the runs were, from 0 for the worst, or for no test that passed, to 1.
func (g *Goal) Heights() []float64 {
	low, high := 0.0, 0.0
	for i, r := range g.Runs {
		if v := r.Rating; v.Of > 0 {
			high = max(high, float64(v.Of))
		} else if v.Error == "" {
			if high = max(high, v.Value); i == 0 || v.Value < low {
				low = v.Value
			}
		}
	}
	out := make([]float64, len(g.Runs))
	for i, r := range g.Runs {
		if high > low && r.Rating.Error == "" {
			out[i] = (r.Rating.Value - low) / (high - low)
		}
	}
	return out
}
