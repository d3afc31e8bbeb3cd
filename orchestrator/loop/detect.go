package loop

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"anamnesis/opstream/op"
)

// The rules of Detect. A run is flagged at the first call that meets one.
const (
	RuleStreak = "streak" // the same call streakLength times in a row, whatever it returned
	RuleRepeat = "repeat" // the same call BlockAt times in the same world: what the live guard refuses
	RuleCycle  = "cycle"  // 2 to maxCycle calls in the same order cycleTimes times
	RuleStale  = "stale"  // the same call with the same result staleCount times among staleWindow, although the world changed
	RuleJump   = "jump"   // JumpAt jumps of the agent back to one step, whatever the reasons: what the live guard holds back
)

// The numbers of the rules. They are chosen to fire in every run at least as early as those of
// gemini-cli, OpenHands, Cline, Crush and kimi-code.
const (
	streakLength = 3
	cycleTimes   = 3
	maxCycle     = 5
	staleCount   = 5
	staleWindow  = 10
)

// Recorded is one call of a recorded run, and its outcome.
type Recorded struct {
	Tool   string
	Args   string
	Result string
	Failed bool
	// World identifies the state the call ran in; empty if unknown: then the rules about the
	// same world do not apply.
	World   string
	Effects bool   // see Call
	Seq     uint64 // of the operation, in a run of this program
	// Back is the jump back that the agent made with this call; nil for other calls, forward
	// jumps, and refused jumps.
	Back *Back
}

// Back is a jump of the agent to an earlier step of the path it was on.
type Back struct {
	To  int
	Seq uint64 // of the jump's operation, in a run of this program
}

// Finding is one loop in a run.
type Finding struct {
	Rule  string `json:"rule"`
	At    int    `json:"at"`    // the call that meets the rule, from 1
	First int    `json:"first"` // the call where the loop begins
	Calls []int  `json:"calls"` // the calls that make it, ascending
	Text  string `json:"text"`
}

// run is a recorded run prepared for comparisons.
type run struct {
	calls  []Recorded
	action []string // tool and canonical arguments
	full   []string // the same with the result
}

func newRun(calls []Recorded) *run {
	r := &run{calls: calls, action: make([]string, len(calls)), full: make([]string, len(calls))}
	for i, c := range calls {
		r.action[i] = c.Tool + "\x00" + op.CanonicalArgs(c.Args)
		sum := sha256.Sum256([]byte(c.Result))
		r.full[i] = r.action[i] + "\x00" + string(sum[:])
	}
	return r
}

// Detect finds the loops of a recorded run, in order of appearance. Each rule reports a loop
// once, however long it continues. It is pure.
func Detect(calls []Recorded) []Finding {
	r := newRun(calls)
	var out []Finding
	out = append(out, r.streaks()...)
	out = append(out, r.repeats()...)
	out = append(out, r.cycles()...)
	out = append(out, r.stale()...)
	out = append(out, r.jumps()...)
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(a.At, b.At) })
	return out
}

// streaks finds the same call repeated in a row.
func (r *run) streaks() []Finding {
	var out []Finding
	n := 0
	for i := range r.action {
		if i > 0 && r.action[i] == r.action[i-1] {
			n++
		} else {
			n = 1
		}
		if n == streakLength {
			out = append(out, finding(RuleStreak, sequence(i-n+1, i), fmt.Sprintf("%s was called %d times in a row with the same arguments", r.calls[i].Tool, n)))
		}
	}
	return out
}

// repeats finds what the live guard would have refused.
func (r *run) repeats() []Finding {
	var out []Finding
	var t Tally
	polling := Polling()
	for i, c := range r.calls {
		call := Call{World: c.World, Tool: c.Tool, Args: c.Args, Effects: c.Effects}
		if slices.ContainsFunc(polling, func(p Pattern) bool { return p.Match(c.Tool, c.Args) }) {
			continue
		}
		earlier := t.Earlier(call, func(uint64) bool { return true })
		if len(earlier)+1 == BlockAt {
			var calls []int
			for _, e := range earlier {
				calls = append(calls, int(e.Seq))
			}
			out = append(out, finding(RuleRepeat, append(calls, i+1), fmt.Sprintf("%s was called %d times with the same arguments while nothing had changed", c.Tool, BlockAt)))
		}
		t.Add(call, Run{Seq: uint64(i + 1), Failed: c.Failed})
	}
	return out
}

// cycles finds sequences of calls that repeat in the same order.
func (r *run) cycles() []Finding {
	var out []Finding
	for length := 2; length <= maxCycle; length++ {
		same := 0 // how many calls, up to this one, equal the one length before
		for i := length; i < len(r.action); i++ {
			if r.action[i] != r.action[i-length] {
				same = 0
				continue
			}
			same++
			if same == (cycleTimes-1)*length && !r.shorter(i, length) {
				out = append(out, finding(RuleCycle, sequence(i-cycleTimes*length+1, i),
					fmt.Sprintf("the same %d calls came %d times in the same order, %s the last of them", length, cycleTimes, r.calls[i].Tool)))
			}
		}
	}
	return out
}

// shorter reports whether the cycle of a length that ends at call i repeats a single call,
// which is a streak.
func (r *run) shorter(i, length int) bool {
	for k := i - length + 1; k < i; k++ {
		if r.action[k] != r.action[i] {
			return false
		}
	}
	return true
}

// stale finds calls that keep returning the same among the last few.
func (r *run) stale() []Finding {
	var out []Finding
	reported := make(map[string]int) // by call: where it was reported last
	for i := range r.full {
		var calls []int
		for k := max(0, i-staleWindow+1); k <= i; k++ {
			if r.full[k] == r.full[i] {
				calls = append(calls, k+1)
			}
		}
		if len(calls) < staleCount {
			continue
		}
		if last, ok := reported[r.full[i]]; !ok || i-last >= staleWindow {
			out = append(out, finding(RuleStale, calls, fmt.Sprintf("%s returned the same %d times within %d calls", r.calls[i].Tool, len(calls), staleWindow)))
		}
		reported[r.full[i]] = i
	}
	return out
}

// jumps finds steps the agent repeatedly went back to.
func (r *run) jumps() []Finding {
	var out []Finding
	back := make(map[int][]int) // calls by the step they went back to
	for i, c := range r.calls {
		if c.Back == nil {
			continue
		}
		to := c.Back.To
		back[to] = append(back[to], i+1)
		if len(back[to]) == JumpAt {
			out = append(out, finding(RuleJump, back[to], fmt.Sprintf("%d jumps back to step %d%s", JumpAt, to, r.jumpOps(back[to]))))
		}
	}
	return out
}

// jumpOps names the operations of some calls' jumps, if known.
func (r *run) jumpOps(calls []int) string {
	var seqs []string
	for _, n := range calls {
		if seq := r.calls[n-1].Back.Seq; seq > 0 {
			seqs = append(seqs, fmt.Sprint(seq))
		}
	}
	if len(seqs) == 0 {
		return ""
	}
	return fmt.Sprintf(" (ops %s)", strings.Join(seqs, ", "))
}

// sequence numbers the calls from index a to index b, from 1.
func sequence(a, b int) []int {
	out := make([]int, 0, b-a+1)
	for i := a; i <= b; i++ {
		out = append(out, i+1)
	}
	return out
}

func finding(rule string, calls []int, text string) Finding {
	return Finding{Rule: rule, At: calls[len(calls)-1], First: calls[0], Calls: calls, Text: text}
}
