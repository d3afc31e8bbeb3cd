package state

import (
	"strings"
	"testing"
	"unicode/utf8"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state/steps"
)

// withRuns is a state in the midst of a turn, whose steps have these worlds and whose goal was checked so.
func withRuns(t *testing.T, worlds string, runs ...GoalRun) *State {
	t.Helper()
	s := &State{Last: 1_000, Current: len(worlds) - 1}
	s.Turn.Open = true
	s.Goal.Until = []string{"make test"}
	for i, w := range worlds {
		s.Steps.Add(steps.Step{ID: i, Parent: max(i-1, 0), Ended: true, Saved: true, World: steps.MarkOf(string(w))})
	}
	for i := range runs {
		runs[i].World = s.Steps.At(runs[i].Step).World
		runs[i].Seq = uint64(i + 1)
	}
	s.Goal.Runs = runs
	return s
}

// TestChecksWhen: the checks run at the beginning, when the agent says that it is done, after a change if they
// are fast, and before a turn ends otherwise.
func TestChecksWhen(t *testing.T) {
	failed := GoalRun{Step: 1, Rating: op.Rating{Of: 3}}
	fast := GoalRun{Step: 1, Rating: op.Rating{Of: 3}, Fast: true}
	for _, tt := range []struct {
		name  string
		state *State
		lim   Limits
		want  ActionKind
	}{
		{"at the beginning", withRuns(t, "a"), Limits{}, ActCheck},
		{"slow, after a change", withRuns(t, "abc", failed), Limits{}, ActAsk},
		{"fast, after a change", withRuns(t, "abc", fast), Limits{}, ActCheck},
		{"fast, without a change", withRuns(t, "abb", fast), Limits{}, ActAsk},
		{"before a limit", withRuns(t, "abc", failed), Limits{Limits: op.Limits{Steps: 1}}, ActCheck},
		{"no time for it", withRuns(t, "abc", failed), Limits{TimeUp: true}, ActEndTurn},
		{"fast, when the time is over", withRuns(t, "abc", fast), Limits{Limits: op.Limits{Time: 1}, TimeUp: true}, ActCheck},
		{"in plan mode", func() *State { s := withRuns(t, "abc", fast); s.Grants.Plan = true; return s }(), Limits{}, ActAsk},
		{"a limit in plan mode", func() *State { s := withRuns(t, "abc", fast); s.Grants.Plan = true; return s }(), Limits{Limits: op.Limits{Steps: 1}}, ActEndTurn},
		{"without a goal", func() *State { s := withRuns(t, "abc"); s.Goal.Until = nil; return s }(), Limits{}, ActAsk},
	} {
		tt.state.Turn.Steps = 1
		if act := Next(tt.state, tt.lim); act.Kind != tt.want {
			t.Errorf("%s: action %v, want %v", tt.name, act.Kind, tt.want)
		}
	}

	s := withRuns(t, "ab", failed)
	s.Turn.Answered, s.Turn.AskedAt = true, 500
	if act := Next(s, Limits{}); act.Kind != ActCheck || act.Reason != "asked" {
		t.Errorf("the agent says that it is done: %+v", act)
	}
	s.check(600, &op.CheckRan{Asked: true, Checks: []op.Check{{Exit: 1}}})
	if act := Next(s, Limits{}); act.Kind != ActAsk {
		t.Errorf("after a check that failed: %+v", act)
	}
	s.Turn.Answered, s.Turn.AskedAt = true, 600
	s.check(700, &op.CheckRan{Asked: true, Passed: true, Checks: []op.Check{{}}})
	if act := Next(s, Limits{}); act.Kind != ActEndTurn || act.Reason != "done" {
		t.Errorf("after a check that passed: %+v", act)
	}
}

// TestNeverWorse: a turn that ends without its goal goes back to the step with the best check.
func TestNeverWorse(t *testing.T) {
	good, bad := GoalRun{Step: 1, Rating: op.Rating{Value: 3, Of: 5}},
		GoalRun{Step: 2, Rating: op.Rating{Value: 1, Of: 5}}
	for _, tt := range []struct {
		name   string
		state  *State
		change func(*State)
		want   ActionKind
	}{
		{"it was better", withRuns(t, "abc", good, bad), nil, ActReturn},
		{"it had passed", withRuns(t, "abc", GoalRun{Step: 1, Passed: true, Rating: op.Rating{Of: 5}}, bad), nil, ActReturn},
		{"it was never better", withRuns(t, "abc", GoalRun{Step: 1, Rating: op.Rating{Value: 1, Of: 5}}, bad), nil, ActEndTurn},
		{"the last one is best", withRuns(t, "abc", bad, GoalRun{Step: 2, Rating: op.Rating{Value: 2, Of: 5}}), nil, ActEndTurn},
		{"the files are the same", withRuns(t, "aba", GoalRun{Step: 0, Rating: op.Rating{Value: 3, Of: 5}}, bad), nil, ActEndTurn},
		{"not wanted", withRuns(t, "abc", good, bad), func(s *State) { s.Goal.KeepLast = true }, ActEndTurn},
	} {
		tt.state.Turn.Steps = 9
		if tt.change != nil {
			tt.change(tt.state)
		}
		tt.state.Goal.Runs[len(tt.state.Goal.Runs)-1].World = tt.state.Steps.At(tt.state.Current).World
		if act := Next(tt.state, Limits{Limits: op.Limits{Steps: 9}}); act.Kind != tt.want ||
			tt.want == ActReturn && act.Step != 1 {
			t.Errorf("%s: %+v, want kind %v", tt.name, act, tt.want)
		}
	}
}

// TestEnding: a turn that the model's fault or an interruption ends goes back likewise; a jump under way is finished.
func TestEnding(t *testing.T) {
	good, bad := GoalRun{Step: 1, Rating: op.Rating{Value: 3, Of: 5}},
		GoalRun{Step: 2, Rating: op.Rating{Value: 1, Of: 5}, Fast: true}
	for _, tt := range []struct {
		name   string
		worlds string
		change func(*State)
		lim    Limits
		want   ActionKind
	}{
		{"it was better", "abc", func(*State) {}, Limits{TimeUp: true}, ActReturn},
		{"unchecked", "abcd", func(*State) {}, Limits{}, ActCheck},
		{"unchecked, interrupted", "abcd", func(*State) {}, Limits{TimeUp: true}, ActCheck},
		{"unchecked and slow, interrupted", "abcd", func(s *State) { s.Goal.Runs[1].Fast = false }, Limits{TimeUp: true}, ActIdle},
		{"on its way", "abc", func(s *State) { s.Jump.Pending = &Pending{JumpRequested: op.JumpRequested{To: 1, By: op.ByGoal}} }, Limits{}, ActJump},
		{"the agent's own jump", "abc", func(s *State) { s.Jump.Pending = &Pending{JumpRequested: op.JumpRequested{To: 1, By: op.ByAgent}} }, Limits{}, ActIdle},
		{"a reply is under way", "abcd", func(s *State) { s.Reply = new(Reply) }, Limits{}, ActIdle},
		{"the user's jump", "abcd", func(s *State) { s.Jump.Pending = new(Pending) }, Limits{}, ActIdle},
		{"the turn has ended", "abc", func(s *State) { s.Turn.Open = false }, Limits{}, ActIdle},
	} {
		s := withRuns(t, tt.worlds, good, bad)
		tt.change(s)
		if act := Ending(s, tt.lim); act.Kind != tt.want {
			t.Errorf("%s: %+v, want kind %v", tt.name, act, tt.want)
		}
	}
}

// TestCurve: the line is as high as the score, and the best of a share of the runs stands for it.
func TestCurve(t *testing.T) {
	var g Goal
	if line, text := g.Curve(); line+text != "" {
		t.Errorf("without runs: %q %q", line, text)
	}
	for _, tt := range []struct {
		values []float64
		text   string
	}{
		{[]float64{2}, "2 of 4 passed at step 0"},
		{[]float64{2, 1}, "2 of 4 passed at step 0, last 1 of 4 passed at step 1"},
		{[]float64{1, 2}, "1 of 4 passed at step 0, last 2 of 4 passed at step 1"},
	} {
		var g Goal
		for i, v := range tt.values {
			g.Runs = append(g.Runs, GoalRun{Seq: uint64(i + 1), Step: i, Rating: op.Rating{Value: v, Of: 4}})
		}
		if _, text := g.Curve(); text != tt.text {
			t.Errorf("%v: %s, want %s", tt.values, text, tt.text)
		}
	}
	for i, v := range []float64{0, 2, 4, 1} {
		g.Runs = append(g.Runs, GoalRun{Seq: uint64(i + 1), Step: i, Rating: op.Rating{Value: v, Of: 4}})
	}
	if line, text := g.Curve(); line != "▁▅█▃" ||
		text != "0 of 4 passed at step 0, best 4 of 4 passed at step 2, last 1 of 4 passed at step 3" {
		t.Errorf("%q %q", line, text)
	}
	for i := range 3 * maxCurve {
		g.Runs = append(g.Runs, GoalRun{Seq: uint64(i + 5), Rating: op.Rating{Value: float64(i % 3), Of: 2}})
	}
	if line, _ := g.Curve(); utf8.RuneCountInString(line) != maxCurve || strings.Contains(line[3:], "▁") {
		t.Errorf("%q", line)
	}
	g.Runs = []GoalRun{{Rating: op.Rating{Value: -3}}, {Rating: op.Rating{Value: 1e300}},
		{Rating: op.Rating{Error: "x"}}}
	if line, _ := g.Curve(); line != "▁█▁" {
		t.Errorf("%q", line)
	}
}

// TestCheck: a check counts against the last one on the same files, and is fast if it takes less than ten seconds.
func TestCheck(t *testing.T) {
	asked := &op.CheckRan{Asked: true}
	for _, tt := range []struct {
		name  string
		was   string // the world of the run before; empty: none
		unmet int
		b     *op.CheckRan
		want  int
	}{
		{"the first", "", 0, asked, 1},
		{"on the same files", "b", 2, asked, 3},
		{"the first that was asked for", "b", 0, asked, 1},
		{"on other files", "a", 2, asked, 1},
		{"that nobody asked for", "b", 2, new(op.CheckRan), 2},
		{"that passed", "b", 2, &op.CheckRan{Asked: true, Passed: true}, 2},
	} {
		s := withRuns(t, "ab")
		if s.Goal.Unmet = tt.unmet; tt.was != "" {
			s.Goal.Runs = []GoalRun{{World: steps.MarkOf(tt.was)}}
		}
		if s.check(600, tt.b); s.Goal.Unmet != tt.want {
			t.Errorf("%s: %d in a row, want %d", tt.name, s.Goal.Unmet, tt.want)
		}
	}
	for ms, want := range map[int64]bool{fastCheck - 1: true, fastCheck: false} {
		s := withRuns(t, "ab")
		if s.check(600, &op.CheckRan{Millis: ms}); s.Goal.fast() != want {
			t.Errorf("a check of %d ms is fast: %v", ms, !want)
		}
	}

	passed := GoalRun{Step: 1, Passed: true}
	askedFor, failed := passed, GoalRun{Step: 1}
	askedFor.Asked = true
	for _, tt := range []struct {
		name  string
		runs  []GoalRun
		meant bool
		lim   Limits
		want  ActionKind
	}{
		{"it passes before anything was done", []GoalRun{passed}, false, Limits{Present: true}, ActAskUser},
		{"nobody is there", []GoalRun{passed}, false, Limits{User: true}, ActAsk},
		{"the user meant it", []GoalRun{passed}, true, Limits{Present: true}, ActAsk},
		{"it passes after something was done", []GoalRun{failed, passed}, false, Limits{Present: true}, ActAsk},
		{"it failed", []GoalRun{failed}, false, Limits{Present: true}, ActAsk},
		{"the agent is done", []GoalRun{askedFor}, false, Limits{Present: true}, ActAsk},
		{"no run", nil, false, Limits{Present: true}, ActCheck},
	} {
		s := withRuns(t, "ab", tt.runs...)
		s.Goal.Meant = tt.meant
		if act := Next(s, tt.lim); act.Kind != tt.want {
			t.Errorf("%s: %+v, want kind %d", tt.name, act, tt.want)
		}
	}

	for name, tt := range map[string]struct {
		runs  []GoalRun
		asked uint64
		lim   Limits
		want  ActionKind
	}{
		"a check before the request":       {[]GoalRun{failed}, 1, Limits{}, ActCheck},
		"a check since":                    {[]GoalRun{failed}, 0, Limits{}, ActEndTurn},
		"none, and the time is over":       {nil, 1, Limits{TimeUp: true}, ActEndTurn},
		"a slow one, and the time is over": {[]GoalRun{failed}, 1, Limits{TimeUp: true}, ActEndTurn},
	} {
		s := withRuns(t, "ab", tt.runs...)
		s.Turn.Answered, s.Turn.AskedAt = true, tt.asked
		if act := Next(s, tt.lim); act.Kind != tt.want {
			t.Errorf("%s: %+v, want kind %d", name, act, tt.want)
		}
	}
}

// TestUnmet: an agent that says again and again that it is done, and changes nothing, gets strategies, and then its
// turn ends.
func TestUnmet(t *testing.T) {
	s := withRuns(t, "ab", GoalRun{Step: 1, Rating: op.Rating{Of: 1}})
	for n := range maxStrategies + 1 {
		for i := range MaxUnmet {
			if act := Next(s, Limits{}); act.Kind != ActAsk {
				t.Fatalf("after %d strategies and %d checks: %+v", n, i, act)
			}
			s.check(uint64(600+10*n+i), &op.CheckRan{Asked: true, Checks: []op.Check{{Exit: 1}}})
		}
		act := Next(s, Limits{})
		if n == maxStrategies {
			if act.Kind != ActEndTurn || act.Reason != "stuck" {
				t.Errorf("after all strategies: %+v", act)
			}
			return
		}
		if act.Kind != ActReflect || act.Step != 1 {
			t.Fatalf("after %d strategies and all checks: %+v", n, act)
		}
		s.planned(1, op.Usage{})
	}
}

// TestStuck: checks that get no better bring a strategy, and the task goes back to the best step with it; a better
// check begins anew.
func TestStuck(t *testing.T) {
	s := withRuns(t, "abc", GoalRun{Step: 1, Rating: op.Rating{Value: 3, Of: 5}})
	check := func(passing int) {
		s.check(uint64(600+len(s.Goal.Runs)),
			&op.CheckRan{Checks: []op.Check{{Exit: 1, Passing: passing, Failing: 5 - passing}}})
	}
	for i := range maxStale {
		if act := Next(s, Limits{}); i > 0 && act.Kind != ActAsk {
			t.Fatalf("after %d checks: %+v", i, act)
		}
		check(2)
	}
	if act := Next(s, Limits{}); act.Kind != ActReflect || act.Reason != op.ByGoal || act.Step != 1 {
		t.Fatalf("after %d checks: %+v", maxStale, act)
	}
	s.planned(1, op.Usage{})
	act := Next(s, Limits{})
	if act.Kind != ActReturn || act.Step != 1 {
		t.Fatalf("with a strategy: %+v", act)
	}
	for _, body := range []op.Body{&op.JumpRequested{To: 1, By: op.ByGoal}, &op.JumpDropped{To: 1}} {
		if err := s.apply(op.Op{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	if act := Next(s, Limits{}); act.Kind != ActAsk {
		t.Errorf("a way back that is lost: %+v", act)
	}
	if act := Next(s, Limits{Limits: op.Limits{Steps: 1}}); act.Kind != ActAsk && act.Kind != ActEndTurn {
		t.Errorf("a way back that is lost, at the end: %+v", act)
	}
	if s.Goal.Strategies != 1 {
		t.Errorf("%d strategies", s.Goal.Strategies)
	}
	if check(4); s.Goal.Stale+s.Goal.Strategies != 0 {
		t.Errorf("after a better check: %+v", s.Goal)
	}
}

// TestWithGoal: what a turn does instead of ending, if anything.
func TestWithGoal(t *testing.T) {
	good, bad := GoalRun{Step: 1, Rating: op.Rating{Value: 3, Of: 5}},
		GoalRun{Step: 2, Rating: op.Rating{Value: 1, Of: 5}}
	limit := Action{Kind: ActEndTurn, Reason: "limit"}
	for _, tt := range []struct {
		name   string
		act    Action
		worlds string
		change func(*State)
		timeUp bool
		want   ActionKind
		reason string
	}{
		{"goes back", limit, "abc", nil, false, ActReturn, ""},
		{"goes back, when the time is over", limit, "abc", nil, true, ActReturn, ""},
		{"checks", limit, "abcd", nil, false, ActCheck, ""},
		{"checks, when the time is over, if that is fast", limit, "abcd", func(s *State) { s.Goal.Runs[1].Fast = true }, true, ActCheck, LastCheck},
		{"has no time for a slow check", limit, "abcd", nil, true, ActEndTurn, "limit"},
		{"is done", Action{Kind: ActEndTurn, Reason: "done"}, "abc", nil, false, ActEndTurn, "done"},
		{"does not end", Action{Kind: ActAsk, Reason: "limit"}, "abc", nil, false, ActAsk, "limit"},
		{"does not end, unchecked", Action{Kind: ActAsk}, "abcd", nil, false, ActAsk, ""},
		{"jumps", limit, "abc", func(s *State) { s.Jump.Pending = new(Pending) }, false, ActEndTurn, "limit"},
		{"jumps, unchecked", limit, "abcd", func(s *State) { s.Jump.Pending = new(Pending) }, false, ActEndTurn, "limit"},
		{"plans", limit, "abc", func(s *State) { s.Grants.Plan = true }, false, ActEndTurn, "limit"},
		{"was not saved", limit, "abcd", func(s *State) { s.Steps.List[3].Saved = false }, false, ActEndTurn, "limit"},
		{"cannot go back to what was not saved", limit, "abc", func(s *State) { s.Steps.List[1].Saved = false }, false, ActEndTurn, "limit"},
		{"has passed", limit, "abc", func(s *State) { s.Goal.Runs[1].Passed = true }, false, ActEndTurn, "limit"},
		{"was never checked", limit, "abc", func(s *State) { s.Goal.Runs = nil }, false, ActCheck, ""},
		{"has no goal", limit, "abc", func(s *State) { s.Goal = Goal{} }, false, ActEndTurn, "limit"},
	} {
		s := withRuns(t, tt.worlds, good, bad)
		if tt.change != nil {
			tt.change(s)
		}
		if act := s.withGoal(tt.act, Limits{TimeUp: tt.timeUp}); act.Kind != tt.want || act.Reason != tt.reason ||
			tt.want == ActReturn && act.Step != 1 {
			t.Errorf("%s: %+v", tt.name, act)
		}
	}
}
