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
	for _, row := range [][3]Verdict{{Allow, Ask, Ask}, {Ask, Refuse, Refuse}, {Refuse, "", Refuse}, {Ask, Ask, Ask}} {
		a, b := Decision{Verdict: row[0], By: "a"}, Decision{Verdict: row[1], By: "b"}
		if got := StricterDecision(a, b); got.Verdict != row[2] || row[0] == row[2] && got != a {
			t.Errorf("%+v and %+v: %+v", a, b, got)
		}
		if got := StricterDecision(b, a); got.Verdict != row[2] && got != b {
			t.Errorf("%+v and %+v: %+v", b, a, got)
		}
	}
}
