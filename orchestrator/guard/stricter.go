package guard

// StricterMode is the one of two modes that lets less run without a user;
// an empty mode is no limit.
func StricterMode(a, b Mode) Mode {
	return stricter([]Mode{ModeAuto, ModeEdits, ModeAsk, ModeDeny}, a, b)
}

// StricterConfinement is the one of two confinements that lets a command change
// less; an empty one is ConfineWorld.
func StricterConfinement(a, b Confinement) Confinement {
	return stricter([]Confinement{ConfineOff, ConfineWorld, ConfineReadOnly}, orWorld(a), orWorld(b))
}

func orWorld(c Confinement) Confinement {
	if c == "" {
		return ConfineWorld
	}
	return c
}

// stricter is the later of two in a list; what is not in the list is the
// mildest.
func stricter[T comparable](list []T, a, b T) T {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] == a || list[i] == b {
			return list[i]
		}
	}
	return a
}

// StricterDecision is the one of two decisions on a call that lets less run; the
// first where they are equal.
func StricterDecision(a, b Decision) Decision {
	if b.Verdict.rank() > a.Verdict.rank() {
		return b
	}
	return a
}
