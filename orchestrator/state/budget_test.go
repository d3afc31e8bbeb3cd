package state

import (
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/optest"
)

// TestBudgets: each budget ends the turn, with what the task itself used, what
// subagents at work used and what was used before there were prices.
func TestBudgets(t *testing.T) {
	s := new(State)
	s.Totals.Usage = op.Usage{Prompt: 900, Completion: 100, USD: 0.5, Priced: 1000}
	for _, c := range []struct {
		lim  Limits
		want string // of the detail; empty: within
	}{
		{Limits{}, ""},
		{Limits{Limits: op.Limits{Tokens: 1001}}, ""},
		{Limits{Limits: op.Limits{Tokens: 1000}}, "1000 tokens used, 1000 were allowed"},
		{Limits{Limits: op.Limits{Tokens: 1200}, Others: Used{Tokens: 200}}, "1200 tokens used"},
		{Limits{Limits: op.Limits{USD: 0.51}}, ""},
		{Limits{Limits: op.Limits{USD: 0.5}}, "$0.5000 spent, $0.5000 were allowed"},
		{Limits{Limits: op.Limits{USD: 0.8}, Others: Used{USD: 0.2}}, ""},
		{Limits{Limits: op.Limits{USD: 0.8}, Others: Used{USD: 0.3}}, "$0.8000 spent"},
		{Limits{Limits: op.Limits{USD: 1.5}, EarlierUSD: 1}, "$1.50 spent, $1.50 were allowed"},
		{Limits{TimeUp: true}, "is over"},
	} {
		if _, got := overBudget(s, c.lim); (got == "") != (c.want == "") ||
			!strings.HasPrefix(got, c.want) && !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.lim, got, c.want)
		}
	}
}

// TestEmptyReplies: an empty reply is asked for again, so often; then it is the answer.
func TestEmptyReplies(t *testing.T) {
	after := func(replies string) Turn {
		t.Helper()
		s := new(State)
		for _, o := range optest.Parse(t, "task.opened 0 {\"task\":\"t\"}\nuser.said 0 {\"text\":\"go\",\"source\":\"request\"}\n"+replies) {
			if err := Fold(s, o); err != nil {
				t.Fatal(err)
			}
		}
		return s.Turn
	}
	for n := range MaxEmptyReplies + 1 {
		empty := strings.Repeat("model.replied 0 {}\n", n+1)
		if got, want := after(empty).Answered, n == MaxEmptyReplies; got != want {
			t.Errorf("after %d empty replies: answered %v", n+1, got)
		}
		if got := after(empty + "model.replied 0 {\"text\":\"Done.\"}"); !got.Answered || got.Empties != 0 {
			t.Errorf("after %d empty replies and an answer: %+v", n+1, got)
		}
	}
}
