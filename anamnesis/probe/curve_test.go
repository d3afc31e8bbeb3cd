package probe

import (
	"math"
	"testing"
)

// TestFit: what scores at a few lengths say of the span, and how surely.
func TestFit(t *testing.T) {
	at := func(length, right, n int) Test { return Test{Length: length, Score: Score{Right: right, N: n}} }
	refused := Test{Length: 16_000, Score: Score{N: 1}, TooLong: true}
	for _, tt := range []struct {
		name      string
		base      Score
		tests     []Test
		longest   int
		low, high int     // the span lies between
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
				t.Errorf("span %d, want %d to %d", n, tt.low, tt.high)
			}
			if e.within > 1+1e-9 || math.IsNaN(e.within) || (e.within >= sureEnough) != tt.sure || 1-e.within < tt.doubt {
				t.Errorf("within an octave with probability %.3f", e.within)
			}
		})
	}
}
