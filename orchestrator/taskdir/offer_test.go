package taskdir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestOffer: a process that only keeps a task open gives the directory to one that asks, unless work has begun. It
// has it back if nobody asked.
func TestOffer(t *testing.T) {
	failed := errors.New("failed")
	for name, tt := range map[string]struct {
		asked     bool
		closed    error // of the closing; nil: the hold is released
		given     bool
		reclaimed bool
	}{
		"not asked for":      {reclaimed: true},
		"given":              {asked: true, given: true},
		"at work":            {asked: true, closed: ErrBusy, reclaimed: true},
		"could not be ended": {asked: true, closed: failed},
	} {
		t.Run(name, func(t *testing.T) {
			h := Home{State: t.TempDir()}
			dir := filepath.Join(h.State, "w")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			first, err := HoldDir(h, dir, "first", "")
			if err != nil {
				t.Fatal(err)
			}
			if !tt.given {
				defer first.Release()
			}
			closings := 0
			reclaim, err := first.Offer(func() error {
				closings++
				if tt.closed != nil {
					return tt.closed
				}
				return first.Release()
			})
			if err != nil {
				t.Fatal(err)
			}
			if tt.asked {
				second, err := HoldDir(h, dir, "second", "")
				if (err == nil) != tt.given || err != nil && !errors.Is(err, ErrBusy) || closings != 1 {
					t.Errorf("the second task: %v, after %d closings", err, closings)
				}
				if err == nil {
					defer second.Release()
				}
			}
			if got := reclaim(); got != tt.reclaimed {
				t.Errorf("reclaimed: %v", got)
			}
			if before := closings; tt.reclaimed {
				if _, err := HoldDir(h, dir, "third", ""); !errors.Is(err, ErrBusy) || closings != before {
					t.Errorf("asked for after the offer: %v, %d closings", err, closings-before)
				}
			}
		})
	}
}
