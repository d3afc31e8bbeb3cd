package memory

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// TestUnboundedRatio: where one arm of a resample repeats nothing, the ratio to
// it has no upper end, and says so.
func TestUnboundedRatio(t *testing.T) {
	r := RowReport{Name: "flat", Comparisons: []Comparison{{Arm: "anamnesis", Against: "mask", Repeated: Interval{0.25, 0, math.MaxFloat64}}}}
	var b bytes.Buffer
	r.writeText(&b)
	if !strings.Contains(b.String(), "0.25 (0.00–∞)") {
		t.Errorf("%s", b.String())
	}
}
