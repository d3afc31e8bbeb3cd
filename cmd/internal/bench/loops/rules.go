package loops

import (
	"crypto/sha256"
	"fmt"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
)

// Rule is a loop rule of another agent, written from its published behaviour.
type Rule struct {
	Name string
	Text string
	// At returns the first call, from 1, that meets the rule; 0 if none does.
	At func(calls []loop.Recorded) int
}

// Rules returns the rules of other agents. Those agents start counting again
// after each message of the user, and all of them after a rewind. Here a rule
// sees the whole run, which favours it.
func Rules() []Rule {
	return []Rule{
		{"gemini-cli", "cycles of 1 to 5 calls, five times", geminiCLI},
		{"openhands", "same action and observation 4, same action and error 3, ABABAB", openHands},
		{"cline", "the same call 3 times in a row (stops at 5)", threeInARow},
		{"crush", "the same call and result 5 times among the last 10", crush},
		{"kimi-code", "the same call 3 times in a row (again at 5 and 8, stops at 12)", threeInARow},
	}
}

// actions returns each call's tool and canonical arguments.
func actions(calls []loop.Recorded) []string {
	out := make([]string, len(calls))
	for i, c := range calls {
		out[i] = c.Tool + "\x00" + op.CanonicalArgs(c.Args)
	}
	return out
}

// withResults returns each call's action together with its result.
func withResults(calls []loop.Recorded) []string {
	out := actions(calls)
	for i, c := range calls {
		sum := sha256.Sum256([]byte(c.Result))
		out[i] += "\x00" + string(sum[:])
	}
	return out
}

func threeInARow(calls []loop.Recorded) int { return inARow(actions(calls), 3) }

// inARow returns the place, from 1, of the n-th of the first n equal things in a row; 0 if there are none.
func inARow(things []string, n int) int {
	same := 0
	for i := range things {
		if i > 0 && things[i] == things[i-1] {
			same++
		} else {
			same = 1
		}
		if same == n {
			return i + 1
		}
	}
	return 0
}

// earliest returns the least of the places that is not 0, or 0.
func earliest(places ...int) int {
	best := 0
	for _, p := range places {
		if p != 0 && (best == 0 || p < best) {
			best = p
		}
	}
	return best
}

// periodic returns the first place at which things have repeated with a period
// the given number of times; 0 if they never do.
func periodic(things []string, period, times int) int {
	same := 0
	for i := period; i < len(things); i++ {
		if things[i] != things[i-period] {
			same = 0
			continue
		}
		if same++; same == (times-1)*period {
			return i + 1
		}
	}
	return 0
}

func geminiCLI(calls []loop.Recorded) int {
	action, best := actions(calls), 0
	for period := 1; period <= 5; period++ {
		best = earliest(best, periodic(action, period, 5))
	}
	return best
}

func openHands(calls []loop.Recorded) int {
	action, full := actions(calls), withResults(calls)
	errorsOf := make([]string, len(calls))
	for i, c := range calls {
		if c.Failed {
			errorsOf[i] = action[i]
		} else {
			errorsOf[i] = fmt.Sprint(i) // equals nothing
		}
	}
	return earliest(inARow(full, 4), inARow(errorsOf, 3), periodic(full, 2, 3))
}

func crush(calls []loop.Recorded) int {
	full := withResults(calls)
	for i := range full {
		n := 0
		for k := max(0, i-9); k <= i; k++ {
			if full[k] == full[i] {
				n++
			}
		}
		if n >= 5 {
			return i + 1
		}
	}
	return 0
}
