package state

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
)

// ActionKind is the kind of the loop's next action.
type ActionKind int

// The actions.
const (
	ActIdle         ActionKind = iota // nothing to do until a user speaks
	ActRecall                         // look for cards
	ActSaveWorld                      // save the world: ends the step
	ActAsk                            // ask the model
	ActRunCalls                       // run the reply's calls
	ActCloseUnknown                   // record "outcome unknown" for calls a dead process began
	ActJump                           // perform the pending jump
	ActFinishJump                     // finish a jump whose intent was recorded
	ActDropJump                       // give up the pending jump; Detail says why
	ActEndTurn                        // end the turn; Reason and Detail say why
	ActMask                           // mask the results Seqs; Reason is why
	ActReflect                        // reflect before the pending jump, or for the goal (Reason), best at Step
	ActAskUser                        // ask a user Question; without an answer the turn ends with Reason and Detail
	ActCompact                        // run a pass over Steps to make room
	ActLearn                          // run the pass over the paths the task left, before it ends
	ActLearnRepairs                   // record what failed and later worked, before the turn ends
	ActTellRestore                    // report the outcome of a user's restore that has no result
	ActMail                           // deliver the pending D-Mail, which moves no files
	ActCheck                          // run the goal's checks; Reason: asked if the agent says it is done, or LastCheck
	ActReturn                         // schedule the jump to Step, where the check was best; Detail says so
)

// Action is a decision of Next.
type Action struct {
	Kind   ActionKind
	Calls  []CallState // for ActRunCalls and ActCloseUnknown
	Reason string      // for ActEndTurn: see op.TurnEnded; for ActMask: window | overflow
	Detail string
	// Reached is the limit for an ActEndTurn of the reason limit.
	Reached op.Limit
	// Question is for ActAskUser.
	Question string
	// Refusable: an answer that says no ends the turn, too.
	Refusable bool
	Step      int      // for ActReturn and ActReflect
	Seqs      []uint64 // for ActMask: results, oldest first
	Steps     []int    // for ActCompact: neighbours
	Limit     int      // for ActMask: tokens the context may have
	Target    int      // for ActMask and ActCompact: tokens it is to come down to
}

// Limits bound a turn. Jumps never reset them.
type Limits struct {
	op.Limits                // without Steps: DefaultMaxSteps
	EarlierUSD float64       // the task's cost that its operations do not record
	TimeUp     bool          // Time is used up
	Worked     time.Duration // how long this process has worked on the task
	// Outage limits how long a provider that fails transiently is waited for; 0: it is not.
	Outage time.Duration
	// Others is the use of the same budgets by the rest of the family: subagents at work, and
	// for a subagent its parent.
	Others Used
	// ToolTokens is the size of the tools' descriptions, which every request has.
	ToolTokens int
	// User reports whether a user can be asked. Waits: an answer is waited for although no user is
	// present; a limit is a question then.
	User, Waits bool
	// Present reports whether a user is at the task's terminal.
	Present bool
}

// Used is the use of the budgets.
type Used struct {
	Tokens int // of the model
	Steps  int // of the turn
	USD    float64
}

// Plus adds v.
func (u Used) Plus(v Used) Used { return Used{u.Tokens + v.Tokens, u.Steps + v.Steps, u.USD + v.USD} }

// Minus subtracts v.
func (u Used) Minus(v Used) Used { return Used{u.Tokens - v.Tokens, u.Steps - v.Steps, u.USD - v.USD} }

// Limits of the loop.
const (
	// DefaultMaxSteps is how many steps a turn may take by default.
	DefaultMaxSteps = 100
	// MaxBackwardJumps is how many backward jumps to one step the agent makes without a
	// strategy: before the next one the Reflect-Agent is asked.
	MaxBackwardJumps = loop.JumpAt - 1
	// MaxEmptyReplies is how many unfinished replies in a row are asked for again.
	MaxEmptyReplies = 3
)

// Next decides what to do in a state. It is pure: only folding the operations of the performed
// action changes the state. A limit that a user is asked about does not end the turn, so that the way back to the
// best step comes last.
func Next(s *State, lim Limits) Action { return s.withGoal(s.asksLimit(next(s, lim), lim), lim) }

func next(s *State, lim Limits) Action {
	// What another process began comes first: until it ends, the files are those of no step.
	if s.Jump.Intended != nil {
		return Action{Kind: ActFinishJump}
	}
	if s.World.Restoring != nil {
		return Action{Kind: ActTellRestore}
	}
	if s.Steps.Len() == 0 || !s.Steps.At(0).Ended {
		if !s.Turn.Open {
			return Action{Kind: ActIdle} // opened, but without a durable request
		}
		if s.Recall.Why != "" {
			return Action{Kind: ActRecall, Reason: s.Recall.Why}
		}
		return Action{Kind: ActSaveWorld}
	}
	if s.Reply != nil {
		return nextInReply(s)
	}
	// A jump waits for the end of its step, so that all calls of the reply have results and the world is saved.
	if s.Jump.Pending != nil {
		return nextJump(s, lim)
	}
	if !s.Turn.Open {
		return Action{Kind: ActIdle}
	}
	if s.Turn.Answered && s.Turn.LastWords <= s.Turn.AskedAt {
		act := endOfAnswer(s.Turn)
		switch {
		case act.Reason != "done":
		case len(s.Goal.Until) > 0 && !s.Steps.At(s.Current).Saved:
			return endTurn("failed", "the check cannot run, since step %d has no checkpoint: %s", s.Current,
				s.Steps.At(s.Current).NoCheckpoint)
		case s.checkDue(true, false) && lim.TimeUp && !s.Goal.fast():
			act = Action{Kind: ActEndTurn, Reason: "limit"}
			act.Reached, act.Detail = overBudget(s, lim)
			return act
		case s.checkDue(true, false):
			return Action{Kind: ActCheck, Reason: "asked"}
		// The search for repairs comes before the pass, which reads the pairs that it finds.
		case !s.Opened.NoFinalPass && s.Repairs.Due():
			return Action{Kind: ActLearnRepairs}
		case s.learns():
			return Action{Kind: ActLearn}
		}
		return act
	}
	if maxSteps := lim.steps(); s.Turn.Steps+lim.Others.Steps >= maxSteps {
		detail := fmt.Sprintf("steps taken in this turn: %d", maxSteps)
		return Action{Kind: ActEndTurn, Reason: "limit", Reached: op.LimitSteps, Detail: detail}
	}
	if limit, detail := overBudget(s, lim); detail != "" {
		return Action{Kind: ActEndTurn, Reason: "limit", Reached: limit, Detail: detail}
	}
	if act, ok := s.stuck(lim); ok && !s.Grants.Plan {
		return act
	}
	if act, ok := nextForRoom(s, lim); ok {
		return act
	}
	if s.checkDue(false, false) {
		return Action{Kind: ActCheck}
	}
	return Action{Kind: ActAsk}
}

// overBudget returns which budget of the task is used up; empty if none is.
func overBudget(s *State, lim Limits) (limit op.Limit, detail string) {
	used := s.Spent().Tokens + lim.Others.Tokens
	cost := s.Spent().USD + lim.Others.USD + lim.EarlierUSD
	switch {
	case lim.Tokens > 0 && used >= lim.Tokens:
		return op.LimitTokens, fmt.Sprintf("%d tokens used, %d were allowed", used, lim.Tokens)
	case lim.USD > 0 && cost >= lim.USD:
		return op.LimitCost, fmt.Sprintf("%s spent, %s were allowed", Dollars(cost), Dollars(lim.USD))
	case lim.TimeUp && s.Outage != nil:
		return op.LimitTime, fmt.Sprintf(
			"the provider is not asked again before %s, which is beyond the time of %v: %s",
			s.Outage.Until.Local().Format("15:04:05"), lim.Time, s.Outage.Error)
	case lim.TimeUp:
		return op.LimitTime, fmt.Sprintf("the time of %v is over", lim.Time)
	}
	return "", ""
}

// Dollars formats an amount of US dollars, small ones to a hundredth of a cent.
func Dollars(usd float64) string {
	if usd < 1 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

func endTurn(reason, format string, args ...any) Action {
	return Action{Kind: ActEndTurn, Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// endOfAnswer ends a turn in which the agent answered. An empty answer, or one that the
// provider cut off, does not count.
func endOfAnswer(t Turn) Action {
	switch {
	case t.Finish == op.FinishLength:
		return endTurn("limit", "the provider cut the answer off at its token limit, %d times in a row",
			max(t.Empties, 1))
	case t.Finish == "content_filter":
		return endTurn("failed", "the provider's content filter cut the answer off")
	case t.Empty:
		return endTurn("failed", "the model gave an empty or unreadable answer, %d times in a row", max(t.Empties, 1))
	}
	return Action{Kind: ActEndTurn, Reason: "done"}
}

func (l Limits) steps() int {
	if l.Steps > 0 {
		return l.Steps
	}
	return DefaultMaxSteps
}

func nextInReply(s *State) Action {
	open := s.Reply.Open()
	var begun []CallState
	for _, c := range open {
		asks := slices.ContainsFunc(s.Questions, func(q Question) bool { return q.Call == c.ID && q.Task == "" })
		if c.Called && !asks { // one that asks the user has done nothing else: it asks again
			begun = append(begun, c)
		}
	}
	switch {
	case len(begun) > 0:
		// The loop returns from running calls only when all have a result, so a process that
		// died began these.
		return Action{Kind: ActCloseUnknown, Calls: begun}
	case len(open) > 0:
		return Action{Kind: ActRunCalls, Calls: open}
	}
	return Action{Kind: ActSaveWorld}
}

func nextJump(s *State, lim Limits) Action {
	p := s.Jump.Pending
	st, err := s.Checkpoint(p.To)
	switch {
	case err != nil:
		return Action{Kind: ActDropJump, Detail: err.Error()}
	case p.Mail != nil && p.To >= s.Steps.Next()-1:
		return Action{Kind: ActDropJump, Detail: fmt.Sprintf("nothing came after step %d", p.To)}
	case p.contextOnly():
	case !st.Saved:
		return Action{Kind: ActDropJump, Detail: fmt.Sprintf("step %d has no checkpoint: %s", p.To, st.NoCheckpoint)}
	case p.To == s.Current && !p.Git:
		return Action{Kind: ActDropJump, Detail: fmt.Sprintf("step %d is the current step", p.To)}
	}
	backward := p.contextOnly() || s.Steps.OnPath(p.To, s.Current)
	if p.By == op.ByAgent && backward && len(s.Jump.Backward(p.To)) >= MaxBackwardJumps {
		return nextInLoop(s, lim)
	}
	if p.contextOnly() {
		return Action{Kind: ActMail}
	}
	return Action{Kind: ActJump}
}

// contextOnly reports whether the request is a D-Mail that moves no files.
func (p *Pending) contextOnly() bool { return p.Mail != nil && !p.Mail.RestoreFiles }

// nextInLoop holds back a repeated jump until there is a strategy or the user's words.
func nextInLoop(s *State, lim Limits) Action {
	p := s.Jump.Pending
	if p.Question == "" && p.NoStrategy == "" {
		return Action{Kind: ActReflect}
	}
	tried := fmt.Sprintf("%d jumps back to step %d did not help", MaxBackwardJumps, p.To)
	act := Action{Kind: ActEndTurn, Reason: "stuck"}
	if p.Question != "" {
		act.Question = p.Question
		act.Detail = fmt.Sprintf("%s; %s", tried, strings.TrimRight(p.Question, "."))
	} else {
		act.Question = tried + "; what should be tried next?"
		act.Detail = fmt.Sprintf("%s; say what to try next (no strategy: %s)", tried, p.NoStrategy)
	}
	if lim.User {
		act.Kind = ActAskUser
	}
	return act
}
