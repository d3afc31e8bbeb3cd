package guard

import "slices"

// StricterConfinement is the one of two confinements that lets a command change
// less; an empty one is ConfineWorld.
func StricterConfinement(a, b Confinement) Confinement {
	list := []Confinement{ConfineOff, ConfineWorld, ConfineReadOnly}
	at := func(c Confinement) int {
		if c == "" {
			c = ConfineWorld
		}
		return slices.Index(list, c)
	}
	return list[max(at(a), at(b), 0)]
}
