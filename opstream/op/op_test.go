package op

import "testing"

// TestRange: both ends lie in a range.
func TestRange(t *testing.T) {
	for _, tt := range []struct {
		r    Range
		text string
		in   []uint64
	}{{Range{3, 5}, "3-5", []uint64{3, 4, 5}}, {Range{4, 4}, "4", []uint64{4}}, {Range{5, 3}, "5-3", nil}} {
		var in []uint64
		for seq := range uint64(8) {
			if tt.r.Contains(seq) {
				in = append(in, seq)
			}
		}
		if len(in) != len(tt.in) || len(in) > 0 && in[0] != tt.in[0] || tt.r.String() != tt.text {
			t.Errorf("%s holds %v, want %s with %v", tt.r, in, tt.text, tt.in)
		}
	}
}
