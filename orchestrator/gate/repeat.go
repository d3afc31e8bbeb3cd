package gate

import (
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
)

// repeat describes a call's earlier runs in the same world.
type repeat struct {
	times int    // how often it was made before
	Last  uint64 // the last one's result; 0: it is a call of the same reply
	state string // how that run ended
	row   int    // how often it was made in a row before, in any world
}

// WeighCall returns in which world a call would run, what it may change beside the world, and
// how often it ran before. It counts nothing for calls that wait for something outside, and
// for calls in an unknown world, since an earlier call of the same reply may have changed it.
func (g *Gate) WeighCall(c op.Call, spec tool.Spec) (loop.Call, repeat) {
	call := loop.Call{Tool: c.Name, Args: c.Args}
	if g.exempt(c, spec) {
		return call, repeat{}
	}
	// An edit changes the world id, or endStep notices that it does not.
	call.Effects = !spec.ReadOnly && !spec.Edits && !shell.Local(notice.BashCommand(c.Name, c.Args), g.place.Dir)
	r := repeat{row: g.inARow(c)}
	for _, before := range g.State().Reply.Calls {
		if before.ID == c.ID {
			break
		}
		tl, args, err := g.o.Tools().Validate(before.Call)
		if err != nil {
			continue // it does not run
		}
		if !tool.SpecOf(tl, args).ReadOnly {
			return call, repeat{row: r.row}
		}
		if before.Name == c.Name && op.CanonicalArgs(before.Args) == op.CanonicalArgs(c.Args) {
			r.times++
		}
	}
	call.World = g.place.SeenTree()
	if call.World == "" {
		return call, repeat{row: r.row}
	}
	earlier := g.State().Calls.Repeats.Earlier(call, g.State().Context.Shown())
	if n := len(earlier); n > 0 {
		r.times += n
		r.Last, r.state = earlier[n-1].Seq, "it succeeded"
		if earlier[n-1].Failed {
			r.state = "it failed"
		}
	}
	return call, r
}

// inARow returns how often a call was made in a row before it. The state may lack earlier
// calls of its reply.
func (g *Gate) inARow(c op.Call) int {
	s := g.State().Calls.Streak
	for _, before := range g.State().Reply.Calls {
		if before.ID == c.ID {
			break
		}
		if spec, _ := g.o.Tools().Spec(before.Name); !before.Returned && !spec.Rewinds {
			s = s.After(before.Name, before.Args)
		}
	}
	if next := s.After(c.Name, c.Args); next.Key == s.Key {
		return s.Times
	}
	return 0
}

// exempt reports whether a call may repeat on purpose, or has its own guard.
func (g *Gate) exempt(c op.Call, spec tool.Spec) bool {
	if spec.Rewinds || spec.Repeats {
		return true
	}
	if spec.Delegates && textArg([]byte(c.Args), "resume") != "" { // a resumed subagent has progressed
		return true
	}
	return slices.ContainsFunc(g.o.Polling, func(p loop.Pattern) bool { return p.Match(c.Name, c.Args) })
}

func (r repeat) blocked() bool { return r.times+1 >= loop.BlockAt || r.streak() }

// streak reports whether a call is blocked for its repetitions in a row.
func (r repeat) streak() bool { return r.times+1 < loop.BlockAt && r.row+1 >= loop.StreakBlockAt }

// where names the earlier result.
func (r repeat) where() string {
	if r.Last == 0 {
		return "in this reply"
	}
	return fmt.Sprintf("and its result is op %d (%s)", r.Last, r.state)
}

// refusal returns the result of a call that was not run: why, and the alternatives.
func (r repeat) refusal(name string) string {
	if r.streak() {
		return fmt.Sprintf("Not run: this same %s call was made %d times in a row. It runs again after any other call: look at what it has changed, or change the arguments.", name, min(r.row, loop.StreakBlockAt-1))
	}
	text := fmt.Sprintf("Not run: this same %s call was made %d times already in this state of the files, %s.", name, r.times, r.where())
	if r.Last != 0 {
		text += fmt.Sprintf(" recall with op %d opens that result.", r.Last)
	}
	return text + " It runs again once the files have changed. Otherwise change the arguments, look at something else, or jump to another step; to wait for something outside, sleep first in the same command."
}

// Remind adds a reminder to the second result.
func (r repeat) Remind(text string) string {
	switch {
	case loop.RemindsStreak(r.row + 1):
		return strings.TrimRight(text, "\n") + fmt.Sprintf(notice.ReminderLead+" was made %d times in a row now. If it brings nothing new, do something else; at the %dth it is not run.", r.row+1, loop.StreakBlockAt)
	case r.times+1 < loop.RemindAt:
		return text
	}
	return strings.TrimRight(text, "\n") + fmt.Sprintf(notice.ReminderLead+" was made before in this state of the files, %s. A third time it is not run.", r.where())
}

// Held returns the record of a call that does not run because it ran twice or a jump has
// undone it; nil: it may run.
func (g *Gate) Held(c op.Call, call loop.Call, again repeat) []op.Body {
	refused := func(by, text string, seq uint64) []op.Body {
		return []op.Body{&op.ApprovalDecided{Call: c.ID, Decision: "refuse", By: by}, &op.ToolReturned{
			Call: c.ID, Name: c.Name, Text: text, IsError: true, Refused: true, Repeats: seq}}
	}
	if again.blocked() {
		return refused(byRepeat, again.refusal(c.Name), again.Last)
	}
	if g.o.RunUndone {
		return nil
	}
	if u, ok := g.State().Calls.UndoneCall(call); ok {
		return refused(state.ByUndoneGuard, notice.Held(u, c.Name), u.Seq)
	}
	return nil
}
