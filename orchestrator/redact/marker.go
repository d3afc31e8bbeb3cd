package redact

import "strings"

const (
	markerBegin     = "[redacted:"
	markerEnd       = "]"
	markerHashBytes = 3
	maxKindBytes    = 48
)

// Markers lists the markers in a text, each once, in order. The caller knows whether a marker
// has a value.
func Markers(s string) []string {
	var out []string
	seen := map[string]bool{}
	eachMarker(s, func(from, to int) {
		if m := s[from:to]; !seen[m] {
			seen[m] = true
			out = append(out, m)
		}
	})
	return out
}

// HasMarker reports whether there is a marker in a text.
func HasMarker(s string) bool {
	found := false
	eachMarker(s, func(int, int) { found = true })
	return found
}

// ReplaceMarkers returns the text with each marker replaced by the result of put.
func ReplaceMarkers(s string, put func(marker string) string) string {
	var out strings.Builder
	at := 0
	eachMarker(s, func(from, to int) {
		out.WriteString(s[at:from])
		out.WriteString(put(s[from:to]))
		at = to
	})
	if at == 0 {
		return s
	}
	out.WriteString(s[at:])
	return out.String()
}

func eachMarker(s string, visit func(from, to int)) {
	for at := 0; ; {
		i := strings.Index(s[at:], markerBegin)
		if i < 0 {
			return
		}
		from := at + i
		n := markerLen(s[from:])
		if n > 0 {
			visit(from, from+n)
		}
		at = from + max(n, len(markerBegin))
	}
}

// markerLen returns the length of the marker that begins a text; 0 for none.
func markerLen(s string) int {
	rest, ok := strings.CutPrefix(s, markerBegin)
	if !ok {
		return 0
	}
	kind, rest, ok := strings.Cut(rest[:min(len(rest), maxKindBytes+1+2*markerHashBytes+1)], ":")
	if !ok || kind == "" || len(rest) < 2*markerHashBytes+1 || rest[2*markerHashBytes] != ']' {
		return 0
	}
	for i := range len(kind) {
		if c := kind[i]; !isLower(c) && !isDigit(c) && c != '-' {
			return 0
		}
	}
	for i := range 2 * markerHashBytes {
		if c := rest[i]; !isDigit(c) && (c < 'a' || c > 'f') {
			return 0
		}
	}
	return len(markerBegin) + len(kind) + 1 + 2*markerHashBytes + 1
}

// kindName returns a valid kind of marker for any name.
func kindName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := lower(name[i])
		if !isLower(c) && !isDigit(c) {
			c = '-'
		}
		b.WriteByte(c)
		if b.Len() == maxKindBytes {
			break
		}
	}
	if kind := strings.Trim(b.String(), "-"); kind != "" {
		return kind
	}
	return "secret"
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlnum(c byte) bool { return isLower(c) || isUpper(c) || isDigit(c) }

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
