package loop

import (
	"fmt"
	"strings"
	"testing"
)

// trace reads a run: a letter a call, each with the same arguments and result
// at any place; a digit before it means another result, ! makes it fail,
// * means that the world changes after it.
func trace(text string) []Recorded {
	var out []Recorded
	world, result := 0, ""
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			result = string(c)
		case c == '!':
			out[len(out)-1].Failed = true
		case c == '*':
			world++
		default:
			out = append(out, Recorded{Tool: string(c), Args: "{}", Result: result, World: fmt.Sprint("w", world)})
			result = ""
		}
	}
	return out
}

// TestDetect runs synthetic traces of every rule.
func TestDetect(t *testing.T) {
	tests := []struct {
		trace string
		rule  string // the first to fire; empty: none
		at    int
	}{
		{trace: "abcdefgh"},
		{trace: "aa"},
		{trace: "aaa", rule: RuleStreak, at: 3},
		{trace: "a*a*a", rule: RuleStreak, at: 3},
		{trace: "xa!a!a!", rule: RuleStreak, at: 4},
		{trace: "aaaa", rule: RuleStreak, at: 3},
		{trace: "1a2a3a4a5a", rule: RuleStreak, at: 3},
		{trace: "aaaaa", rule: RuleStreak, at: 3},
		{trace: "abacadae", rule: RuleRepeat, at: 5},
		{trace: "a!*ba!ca!", rule: ""},
		{trace: "a!ba!ca!", rule: RuleRepeat, at: 5},
		{trace: "a*b*a*b*a*b", rule: RuleCycle, at: 6},
		{trace: "ababab", rule: RuleRepeat, at: 5},
		{trace: "a*bc*a*bc*a*bc", rule: RuleCycle, at: 9},
		{trace: strings.Repeat("1a*2b*", 5), rule: RuleCycle, at: 6},
		{trace: strings.Repeat("a*bcde*", 5), rule: RuleCycle, at: 15},
		{trace: "a*ba*ca*da*ea", rule: RuleStale, at: 9},
		{trace: "1a*b2a*c3a*d4a*e5a"},
	}
	for _, tt := range tests {
		calls := trace(tt.trace)
		found := Detect(calls)
		if tt.rule == "" && len(found) > 0 || tt.rule != "" && (len(found) == 0 || found[0].Rule != tt.rule || found[0].At != tt.at) {
			t.Errorf("%s: %+v, want %s at %d", tt.trace, found, tt.rule, tt.at)
		}
	}
}

// TestFindingsNameTheirCalls: what a finding says can be looked up.
func TestFindingsNameTheirCalls(t *testing.T) {
	found := Detect(trace("xabab*ab"))
	if len(found) != 1 || found[0].Rule != RuleCycle || found[0].First != 2 || found[0].At != 7 || len(found[0].Calls) != 6 {
		t.Errorf("%+v, want one cycle of the calls 2 to 7", found)
	}
}

// TestJumps: the fourth jump back to one step is flagged once, whatever was
// done in between; jumps to other steps, and calls that did not jump back, do
// not count.
func TestJumps(t *testing.T) {
	back := func(to int) *Back { return &Back{To: to} }
	for name, tt := range map[string]struct {
		jumps []*Back // nil: a call that made none
		at    int
	}{
		"three":            {[]*Back{back(0), back(0), back(0)}, 0},
		"four":             {[]*Back{back(0), nil, back(0), back(0), nil, back(0)}, 6},
		"six":              {[]*Back{back(2), back(2), back(2), back(2), back(2), back(2)}, 4},
		"to several steps": {[]*Back{back(0), back(1), back(2), back(0), back(1), back(2), back(0), back(1), back(2)}, 0},
		"none back":        {[]*Back{nil, nil, nil, nil, nil}, 0},
	} {
		var calls []Recorded
		for i, b := range tt.jumps {
			if b != nil {
				b.Seq = uint64(10 * (i + 1))
			}
			calls = append(calls, Recorded{Tool: "jump_to_step", Args: fmt.Sprintf(`{"reason":"%d"}`, i), Result: fmt.Sprint(i), Back: b})
		}
		found := Detect(calls)
		if tt.at == 0 && len(found) > 0 || tt.at > 0 && (len(found) != 1 || found[0].Rule != RuleJump || found[0].At != tt.at || len(found[0].Calls) != JumpAt) {
			t.Errorf("%s: %+v, want one at %d", name, found, tt.at)
		}
		if name == "four" && (len(found) == 0 || found[0].Text != "4 jumps back to step 0 (ops 10, 30, 40, 60)") {
			t.Errorf("four: %+v does not name the step and the jumps' operations", found)
		}
	}
}
