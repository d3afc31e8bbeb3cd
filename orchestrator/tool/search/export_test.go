package search

import "anamnesis/orchestrator/tool"

// Required returns the texts that a match of an expression contains.
func Required(expr string) (any []string, anyCase bool) {
	want := required(expr)
	return want.any, want.anyCase
}

// MayMatch reports whether Grep examines the lines of a text.
func MayMatch(expr, text string) bool { return required(expr).in([]byte(text)) }

// GlobOf and GrepOf are the tools with another limit of files.
func GlobOf(most int) tool.Tool { return glob{most} }
func GrepOf(most int) tool.Tool { return grep{most, nil} }
