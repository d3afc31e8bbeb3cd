package proposal

import "testing"

// TestFindRise: a rise needs enough calls on either side, a large enough ratio, and significance.
func TestFindRise(t *testing.T) {
	for _, tt := range []struct {
		name         string
		cut          int // calls below have this length, calls above one more
		below, above rate
		want         int // 0: no rise
	}{
		{"nothing", 1000, rate{}, rate{}, 0},
		{"enough on either side", 1000, rate{0, 30}, rate{15, 30}, 1000},
		{"too few below", 1000, rate{0, 29}, rate{15, 30}, 0},
		{"too few above", 1000, rate{0, 30}, rate{15, 29}, 0},
		{"the ratio", 1000, rate{50, 100}, rate{75, 100}, 1000},
		{"below the ratio", 1000, rate{50, 100}, rate{74, 100}, 0},
		{"by chance", 1000, rate{10, 30}, rate{15, 30}, 0},
		{"a fall", 1000, rate{15, 30}, rate{0, 30}, 0},
		{"the second cut", 2000, rate{0, 30}, rate{15, 30}, 2000},
		{"the last cut", 512000, rate{0, 30}, rate{15, 30}, 512000},
		{"between cuts", 1500, rate{0, 30}, rate{15, 30}, 0},
		{"beyond the last cut", 1024000, rate{0, 30}, rate{15, 30}, 0},
	} {
		var samples []sample
		for i := range tt.below.n {
			samples = append(samples, sample{tt.cut, i < tt.below.failed})
		}
		for i := range tt.above.n {
			samples = append(samples, sample{tt.cut + 1, i < tt.above.failed})
		}
		got, ok := findRise(samples)
		if ok != (tt.want > 0) || ok && (got.cut != tt.want || got.below != tt.below || got.above != tt.above) {
			t.Errorf("%s: %+v, %v", tt.name, got, ok)
		}
	}
}

// TestFindRiseClearest: of several cuts the clearest is taken, and its probability counts each cut
// that was tried.
func TestFindRiseClearest(t *testing.T) {
	var samples []sample
	for i := range 120 {
		prompt := 900 + i/40*1000 // 900, 1900, 2900
		samples = append(samples, sample{prompt, prompt > 2000 && i%2 == 0})
	}
	got, ok := findRise(samples)
	if want := 2 * fisher(rate{0, 80}, rate{20, 40}); !ok || got.cut != 2000 || got.p != want {
		t.Errorf("%+v, %v; want the cut 2000 with %g", got, ok, want)
	}
}
