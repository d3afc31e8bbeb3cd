package guard

import "slices"

// StricterConfinement returns the stricter of two confinements; an empty one is ConfineWorld.
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
