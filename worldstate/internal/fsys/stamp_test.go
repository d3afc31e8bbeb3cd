package fsys_test

import (
	"testing"
	"time"

	"anamnesis/worldstate/internal/fsys"
)

// TestRacy: a stamp is racy if a later change might have the same, by the clock's granularity.
func TestRacy(t *testing.T) {
	now := time.Unix(1_000_000, 500_000_000)
	for _, c := range []struct {
		age  time.Duration
		want bool
	}{
		{0, true}, {50 * time.Millisecond, true}, {101 * time.Millisecond, false}, {-time.Hour, true},
		{500 * time.Millisecond, true}, {2500 * time.Millisecond, false},
	} {
		at := now.Add(-c.age).UnixNano() // 500 ms before is a whole second: a coarse clock
		if got := fsys.Racy(fsys.Stamp{Mtime: at, Ctime: at}, now); got != c.want {
			t.Errorf("age %v: racy %v", c.age, got)
		}
	}
}
