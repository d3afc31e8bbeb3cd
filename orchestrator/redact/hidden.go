package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"anamnesis/anamnesis/shell"
)

// hides reports whether a text may hold bytes that a screen or a page does not show.
func hides(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= ' ' && c < 0x7f && c != '\\' || c == '\n' || !utf8.RuneStart(c) {
			continue
		}
		if s[i] == '\b' || hiddenLen(s[i:]) > 0 {
			return true
		}
	}
	return false
}

// shownText returns a text without the bytes that a screen does not show, and the offset in s of each of its bytes
// and of its end: escape sequences (colours split a key that a search highlights), NUL bytes (UTF-16), what a
// backspace overprints (a manual page's bold), characters without width, and the backslashes of markdown (ghp\_…).
func shownText(s string) (string, []int) {
	out, at := make([]byte, 0, len(s)), make([]int, 0, len(s)+1)
	for i := 0; i < len(s); {
		if n := hiddenLen(s[i:]); n > 0 {
			i += n
			continue
		}
		if s[i] == '\b' {
			if _, n := utf8.DecodeLastRune(out); n > 0 && out[len(out)-1] > ' ' {
				out, at = out[:len(out)-n], at[:len(at)-n]
			}
			i++
			continue
		}
		out, at = append(out, s[i]), append(at, i)
		i++
	}
	return string(out), append(at, len(s))
}

// markdownEscapes are the characters of keys that markdown escapes.
const markdownEscapes = "_-.~*+=!"

// sequence matches an escape sequence, one that has not ended, too (ECMA-48, 5.4): CSI, whose first two bytes may be
// one character; OSC, of a link, say, and DCS, whose text is not shown; and short ones.
var sequence = shell.Pattern(`^(?:(?:\x1b\[|\x{9b})[ -?]{0,64}[@-~]?|` +
	`\x1b[\]P_^X][^\n\x07\x1b]*(?:\x07|\x1b[^\n]?)|\x1b[()#]?[^\n]?)`)

// hiddenLen returns the length of what begins a text and is not shown: an escape sequence, a character without width,
// the backslash of an escape. It is 0 for none.
func hiddenLen(s string) int {
	switch r, size := utf8.DecodeRuneInString(s); {
	case r == '\\':
		if len(s) > 1 && strings.IndexByte(markdownEscapes, s[1]) >= 0 {
			return 1
		}
	case r == 0x1b, r == 0x9b:
		return len(sequence().FindString(s[:min(len(s), maxSecretBytes)]))
	case strings.ContainsRune("\t\n\v\f\r\b", r):
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return size
	}
	return 0
}
