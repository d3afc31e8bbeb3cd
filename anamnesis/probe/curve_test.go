package probe

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// TestFit: what scores at a few lengths say of the EAS, and how surely.
func TestFit(t *testing.T) {
	at := func(length, right, n int) Test { return Test{Length: length, Score: Score{Right: right, N: n}} }
	refused := Test{Length: 16_000, Score: Score{N: 1}, TooLong: true}
	for _, tt := range []struct {
		name      string
		base      Score
		tests     []Test
		longest   int
		low, high int     // the EAS lies between
		sure      bool    // enough to stop
		doubt     float64 // at least
	}{
		{"a model that just cuts off", Score{320, 320}, []Test{at(16_000, 0, 8), at(4_000, 26, 26), at(8_000, 26, 26), at(11_300, 0, 8)}, 256_000, 8_000, 11_300, true, 0},
		{"nothing but right answers", Score{320, 320}, []Test{at(64_000, 26, 26), at(256_000, 26, 26)}, 256_000, 200_000, 256_000, true, 0},
		{"nothing but wrong ones", Score{320, 320}, []Test{at(16_000, 0, 8), at(4_000, 0, 8), at(2_000, 0, 8), at(1_400, 0, 8)}, 256_000, 1_000, 1_400, true, 0},
		{"a refusal for the length says nothing of attention", Score{320, 320}, []Test{refused, at(8_000, 26, 26)}, 11_300, 8_000, 11_300, true, 0},
		{"one length passed by luck", Score{310, 320}, []Test{at(16_000, 9, 12), at(4_000, 8, 12), at(8_000, 10, 12)}, 256_000, 1_000, 40_000, false, 0.05},
		{"nothing asked yet", Score{310, 320}, nil, 256_000, 1_000, 256_000, false, 0.3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := fit(tt.base, tt.tests, tt.longest)
			if n := e.length(); n < tt.low || n > tt.high {
				t.Errorf("eas %d, want %d to %d", n, tt.low, tt.high)
			}
			if e.within > 1+1e-9 || math.IsNaN(e.within) || (e.within >= sureEnough) != tt.sure || 1-e.within < tt.doubt {
				t.Errorf("within an octave with probability %.3f", e.within)
			}
		})
	}
}

// TestSettleCost: the items after the bisection end at what was announced for
// them, by their number where they are short and by their tokens where not. The
// models fall so slowly that their EAS is never known well enough.
func TestSettleCost(t *testing.T) {
	mostCalls, mostTokens := 0.0, 0.0 // of what was announced
	for i := range uint64(40) {
		rng := rand.New(rand.NewPCG(7, i))
		eas := []float64{4_000, 30_000}[i%2]
		o := &Options{Longest: []int{256_000, 64_000}[i%2], AtOnce: 1}
		r := &run{o: o, ask: func(_ context.Context, trial Trial) (Outcome, error) {
			share := 1 / (1 + math.Exp(0.15*math.Log2(float64(trial.Length)/eas))*(1-easShare)/easShare)
			return Outcome{Right: rng.Float64() < share}, nil
		}}
		if err := r.base(t.Context()); errors.Is(err, ErrNoBase) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if err := r.bisect(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := Cost{r.res.Calls, r.res.Tokens}
		if err := r.settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		most := o.guardCost()
		mostCalls = max(mostCalls, float64(r.res.Calls-before.Calls)/float64(most.Calls))
		mostTokens = max(mostTokens, float64(r.res.Tokens-before.Tokens)/float64(most.Tokens))
		for _, test := range r.res.Tests {
			if test.N == 0 {
				t.Errorf("nothing was asked at %d tokens", test.Length)
			}
		}
	}
	if mostCalls != 1 || mostTokens > 1 || mostTokens < 0.97 {
		t.Errorf("at most %.3f of the questions and %.3f of the tokens that were announced were used, want all of them and no more", mostCalls, mostTokens)
	}
}
