package notice

import "testing"

// TestVisible: what a terminal would execute, or a reader not see, is shown as an escape.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain é 漢\n\ttext\r\n": "plain é 漢\n\ttext\r\n",
		"a\x1b[2Jb":             `a\x1b[2Jb`,
		"\x00\x7f\u0085":        `\x00\x7f\x85`,
		"a\u202eb\u2069c":       `a\u202eb\u2069c`,
		"\u061c\u200e\u200f":    `\u061c\u200e\u200f`,
		"\u202a\u2066":          `\u202a\u2066`,
		"\u2029\u202f\u2065":    "\u2029\u202f\u2065",
		"\u206a":                "\u206a",
		"\xff\x1b":              "\xff" + `\x1b`,
		"":                      "",
	} {
		if got := Visible(text); got != want {
			t.Errorf("Visible(%q) = %q, want %q", text, got, want)
		}
	}
}
