package approval

import "slices"

// StricterMode is the one of two modes that lets less run without a user; an empty mode
// is no limit.
func StricterMode(a, b Mode) Mode {
	list := []Mode{ModeAuto, ModeEdits, ModeAsk, ModeDeny}
	if at := max(slices.Index(list, a), slices.Index(list, b)); at >= 0 {
		return list[at]
	}
	return a
}

// StricterDecision is the one of two decisions on a call that lets less run; the first
// where they are equal.
func StricterDecision(a, b Decision) Decision {
	if b.Verdict.rank() > a.Verdict.rank() {
		return b
	}
	return a
}
