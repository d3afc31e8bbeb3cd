package op

import "testing"

// TestUsage: what was used between two counts and the first are the second.
func TestUsage(t *testing.T) {
	a := Usage{Prompt: 100, Cached: 40, Completion: 7, Reasoning: 3, USD: 0.25, Priced: 100}
	b := Usage{Prompt: 1, Cached: 1, Completion: 2, Reasoning: 1, USD: 0.5, Priced: 3}
	sum := a.Plus(b)
	if want := (Usage{Prompt: 101, Cached: 41, Completion: 9, Reasoning: 4, USD: 0.75, Priced: 103}); sum != want ||
		sum.Minus(a) != b {
		t.Errorf("%+v, less the first %+v", sum, sum.Minus(a))
	}
	if sum.Tokens() != 110 || sum.Unpriced() != 7 {
		t.Errorf("%d tokens, %d without a price", sum.Tokens(), sum.Unpriced())
	}
}
