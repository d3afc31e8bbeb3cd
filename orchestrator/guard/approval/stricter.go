package approval

import "slices"

// StricterMode returns the stricter of two modes; an empty mode is no limit.
func StricterMode(a, b Mode) Mode {
	list := []Mode{ModeAuto, ModeEdits, ModeAsk, ModeDeny}
	if at := max(slices.Index(list, a), slices.Index(list, b)); at >= 0 {
		return list[at]
	}
	return a
}

// StricterDecision returns the stricter of two decisions on a call; the first if they are
// equal.
func StricterDecision(a, b Decision) Decision {
	if b.Verdict.rank() > a.Verdict.rank() {
		return b
	}
	return a
}
