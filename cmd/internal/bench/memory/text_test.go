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

// TestReadsMarkedJumps: the notice of a jump carries the task's mark.
func TestReadsMarkedJumps(t *testing.T) {
	m := newGrammar().jump.FindStringSubmatch("[END OF DISCARDED STEPS bench7]\n[JUMP bench7] You went back from step 7 to step 2. Reason: x")
	if m == nil || m[1] != "7" || m[2] != "2" {
		t.Errorf("read as %q", m)
	}
}
