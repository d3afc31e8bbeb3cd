//go:build unix

package tui

import "testing"

// TestNearest: a name with a slip is recognised.
func TestNearest(t *testing.T) {
	for word, want := range map[string]string{"/jmp": "/jump", "/tiemline": "/timeline", "/xyzzy": "", "/hlep": "/help"} {
		if got := nearest(word, verbNames()); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
