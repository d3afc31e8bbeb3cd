package redact

import (
	"cmp"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

const (
	markerBegin     = "[redacted:"
	markerEnd       = "]"
	markerHashBytes = 3
	maxKindBytes    = 48
)

// marker matches one; its length limits are maxKindBytes and markerHashBytes.
var marker = shell.Pattern(`\[redacted:[a-z0-9-]{1,48}:[0-9a-f]{6}\]`)

// Markers lists the markers in a text, each once, in order. The caller knows whether a marker
// has a value.
func Markers(s string) (out []string) {
	for _, m := range marker().FindAllString(s, -1) {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// HasMarker reports whether there is a marker in a text.
func HasMarker(s string) bool { return marker().MatchString(s) }

func beginsMarker(s string) bool {
	at := marker().FindStringIndex(s[:min(len(s), len(markerBegin)+2*maxKindBytes)])
	return at != nil && at[0] == 0
}

// ReplaceMarkers returns the text with each marker replaced by the result of put.
func ReplaceMarkers(s string, put func(marker string) string) string {
	return marker().ReplaceAllStringFunc(s, put)
}

// kindName returns a valid kind of marker for any name.
func kindName(name string) string {
	b := []byte(name[:min(len(name), maxKindBytes)])
	for i, c := range b {
		if b[i] = lower(c); !isLower(b[i]) && !isDigit(b[i]) {
			b[i] = '-'
		}
	}
	return cmp.Or(strings.Trim(string(b), "-"), "secret")
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlnum(c byte) bool { return isLower(c) || isUpper(c) || isDigit(c) }

func lower(b byte) byte {
	if isUpper(b) {
		return b + 'a' - 'A'
	}
	return b
}
