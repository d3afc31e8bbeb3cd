package guard

import "testing"

// TestStricter: of two limits the one that lets less happen holds, whichever
// comes first.
func TestStricter(t *testing.T) {
	for _, row := range [][3]Confinement{
		{ConfineOff, ConfineReadOnly, ConfineReadOnly}, {ConfineOff, "", ConfineWorld}, {"", ConfineReadOnly, ConfineReadOnly}, {ConfineOff, ConfineOff, ConfineOff},
	} {
		if a, b := StricterConfinement(row[0], row[1]), StricterConfinement(row[1], row[0]); a != row[2] ||
			b != row[2] {
			t.Errorf("of %q and %q: %q and %q, want %q", row[0], row[1], a, b, row[2])
		}
	}
}
