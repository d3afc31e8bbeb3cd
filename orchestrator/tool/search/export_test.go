package search

// Required returns the texts that a match of an expression contains.
func Required(expr string) (any []string, anyCase bool) {
	want := required(expr)
	return want.any, want.anyCase
}

// MayMatch reports whether Grep examines the lines of a text.
func MayMatch(expr, text string) bool { return required(expr).in([]byte(text)) }
