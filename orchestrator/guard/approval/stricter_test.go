package approval

import "testing"

// TestStricter: of two modes the one that lets less happen holds, whichever comes first.
func TestStricter(t *testing.T) {
	for _, row := range [][3]Mode{
		{ModeAuto, ModeDeny, ModeDeny}, {ModeEdits, ModeAsk, ModeAsk}, {ModeAuto, ModeEdits, ModeEdits}, {ModeAsk, "", ModeAsk}, {ModeAuto, "", ModeAuto},
	} {
		if a, b := StricterMode(row[0], row[1]), StricterMode(row[1], row[0]); a != row[2] || b != row[2] {
			t.Errorf("of %q and %q: %q and %q, want %q", row[0], row[1], a, b, row[2])
		}
	}
}
