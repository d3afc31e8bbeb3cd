// Package repeat holds calls back that repeat themselves: the same call in the same state of the
// files or many times in a row, and a call that a jump has undone.
package repeat

import (
	"context"
	"fmt"
	"slices"

	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/toolset"
	"anamnesis/orchestrator/workspace"
)

// byRepeat is the decision that refuses a call which ran twice.
const byRepeat = "guard:repeat"

// Guard compares calls with earlier ones of a task.
type Guard struct {
	place     *workspace.Place
	tools     *toolset.Set
	runUndone bool
	polling   []loop.Pattern // calls that may repeat in an unchanged world
}

// New returns the guard of a task in a place. runUndone lets a call that a jump has undone run in the
// same state of the files.
func New(p *workspace.Place, tools *toolset.Set, runUndone bool) *Guard {
	return &Guard{place: p, tools: tools, runUndone: runUndone, polling: loop.Polling()}
}

// Check refuses a call that ran twice, or that a jump has undone. The second run of a call gets a
// reminder.
func (g *Guard) Check(_ context.Context, c *gate.Call) ([]op.Body, error) {
	again := g.weigh(c)
	c.Repeats, c.Reminder = again.last, again.reminder()
	if again.blocked() {
		return refuse(c, byRepeat, again.refusal(c.Name), again.last), nil
	}
	if g.runUndone {
		return nil, nil
	}
	if u, ok := g.place.State().Calls.UndoneCall(callOf(c)); ok {
		return refuse(c, state.ByUndoneGuard, notice.UndoneCall(u, c.Name), u.Seq), nil
	}
	return nil, nil
}

func refuse(c *gate.Call, by, why string, earlier uint64) []op.Body {
	return []op.Body{&op.ApprovalDecided{Call: c.ID, Decision: "refuse", By: by}, &op.ToolReturned{
		Call: c.ID, Name: c.Name, Text: why, IsError: true, Refused: true, Repeats: earlier}}
}

func callOf(c *gate.Call) loop.Call {
	return loop.Call{World: c.World, Tool: c.Name, Args: c.Args, Effects: c.Effects}
}

// earlier describes a call's earlier runs in the same world.
type earlier struct {
	times int    // how often it was made before
	last  uint64 // the last one's result; 0: it is a call of the same reply
	state string // how that run ended
	row   int    // how often it was made in a row before, in any world
}

// weigh finds in which world a call would run and what it may change beside the world, and returns
// how often it ran before. It counts nothing for calls that wait for something outside, and for
// calls in an unknown world, since an earlier call of the same reply may have changed it.
func (g *Guard) weigh(c *gate.Call) earlier {
	if g.exempt(c) {
		return earlier{}
	}
	// An edit changes the world id, or endStep notices that it does not.
	c.Effects = !c.Spec.ReadOnly && !c.Spec.Edits && !shell.Local(notice.BashCommand(c.Name, c.Args), g.place.Dir)
	r := earlier{row: g.inARow(c.Call)}
	st := g.place.State()
	for _, before := range st.Reply.Calls {
		if before.ID == c.ID {
			break
		}
		tl, args, err := g.tools.Registry.Validate(before.Call)
		if err != nil {
			continue // it does not run
		}
		if !tool.SpecOf(tl, args).ReadOnly {
			return earlier{row: r.row}
		}
		if before.Name == c.Name && op.CanonicalArgs(before.Args) == op.CanonicalArgs(c.Args) {
			r.times++
		}
	}
	c.World = g.place.SeenTree()
	if c.World == "" {
		return earlier{row: r.row}
	}
	runs := st.Calls.Repeats.Earlier(callOf(c), st.Context.Visible())
	if n := len(runs); n > 0 {
		r.times += n
		r.last, r.state = runs[n-1].Seq, "it succeeded"
		if runs[n-1].Failed {
			r.state = "it failed"
		}
	}
	return r
}

// inARow returns how often a call was made in a row before it. The state may lack earlier
// calls of its reply.
func (g *Guard) inARow(c op.Call) int {
	s := g.place.State().Calls.Streak
	for _, before := range g.place.State().Reply.Calls {
		if before.ID == c.ID {
			break
		}
		if spec, _ := g.tools.Registry.Spec(before.Name); !before.Returned && !spec.Rewinds {
			s = s.After(before.Name, before.Args)
		}
	}
	if next := s.After(c.Name, c.Args); next.Key == s.Key {
		return s.Times
	}
	return 0
}

// exempt reports whether a call may repeat on purpose, or has its own guard.
func (g *Guard) exempt(c *gate.Call) bool {
	if c.Spec.Rewinds || c.Spec.Repeats {
		return true
	}
	if c.Spec.Delegates && gate.TextArg(c.Input, "resume") != "" { // a resumed subagent has progressed
		return true
	}
	return slices.ContainsFunc(g.polling, func(p loop.Pattern) bool { return p.Match(c.Name, c.Args) })
}

func (r earlier) blocked() bool { return r.times+1 >= loop.BlockAt || r.streak() }

// streak reports whether a call is blocked for its repetitions in a row.
func (r earlier) streak() bool { return r.times+1 < loop.BlockAt && r.row+1 >= loop.StreakBlockAt }

func (r earlier) where() string {
	if r.last == 0 {
		return "in this reply"
	}
	return fmt.Sprintf("and its result is op %d (%s)", r.last, r.state)
}

// refusal returns the result of a call that was not run: why, and the alternatives.
func (r earlier) refusal(name string) string {
	if r.streak() {
		return fmt.Sprintf("Not run: this same %s call was made %d times in a row. It runs again after any other "+
			"call: look at what it has changed, or change the arguments.", name, min(r.row, loop.StreakBlockAt-1))
	}
	text := fmt.Sprintf("Not run: this same %s call was made %d times already in this state of the files, %s.",
		name, r.times, r.where())
	if r.last != 0 {
		text += fmt.Sprintf(" recall with op %d opens that result.", r.last)
	}
	return text + " It runs again once the files have changed. Otherwise change the arguments, look at something " +
		"else, or jump to another step; to wait for something outside, sleep first in the same command."
}

// reminderLead begins the line of a reminder.
const reminderLead = "\n[repeated] This same call"

// reminder returns the end of the result of a second run, empty for others.
func (r earlier) reminder() string {
	switch {
	case loop.RemindsStreak(r.row + 1):
		return fmt.Sprintf(reminderLead+" was made %d times in a row now. If it brings nothing new, do something "+
			"else; at the %dth it is not run.", r.row+1, loop.StreakBlockAt)
	case r.times+1 < loop.RemindAt:
		return ""
	}
	return fmt.Sprintf(reminderLead+" was made before in this state of the files, %s. A third time it is not run.",
		r.where())
}
