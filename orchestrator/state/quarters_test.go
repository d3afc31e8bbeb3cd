package state

import (
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
)

// TestQuarterNotice: what is used of a task's limits is told once for each quarter, if nobody watches.
func TestQuarterNotice(t *testing.T) {
	lim := Limits{Limits: op.Limits{Steps: 100, Time: time.Hour}}
	for _, tt := range []struct {
		steps, told int
		worked      time.Duration
		present     bool
		want        int
		text        string
	}{
		{steps: 24},
		{steps: 25, want: 1, text: "[limits] Used so far: 25 of 100 steps in this turn."},
		{steps: 30, told: 1},
		{steps: 50, told: 1, want: 2, text: "50 of 100 steps"},
		{steps: 30, told: 1, worked: 45 * time.Minute, want: 3, text: "30 of 100 steps in this turn, 45m0s of 1h0m0s. Finish what matters first"},
		{steps: 99, told: 3},
		{steps: 50, present: true},
	} {
		s := &State{}
		s.Turn.Steps, s.Turn.Quarter = tt.steps, tt.told
		lim.Worked, lim.Present = tt.worked, tt.present
		got := QuarterNotice(s, lim)
		if got == nil {
			got = &op.NoticeGiven{}
		}
		if got.Quarter != tt.want || !strings.Contains(got.Text, tt.text) {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
	for limit, want := range map[int]bool{5: false, minQuartered - 1: false, minQuartered: true} {
		s := &State{}
		s.Turn.Steps = limit - 1
		if got := QuarterNotice(s, Limits{Limits: op.Limits{Steps: limit}}); (got != nil) != want {
			t.Errorf("a limit of %d steps: %+v", limit, got)
		}
	}
}
