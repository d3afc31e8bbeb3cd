package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// hides reports whether a text may hold bytes that a screen or a page does not show.
func hides(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= ' ' && c < 0x7f && c != '\\' || c == '\n' || c == '\t' || c == '\r' || !utf8.RuneStart(c) {
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

// maxSequenceBytes is the longest escape sequence that is read.
const maxSequenceBytes = 64

// markdownEscapes are the characters of keys that markdown escapes.
const markdownEscapes = "_-.~*+=!"

// hiddenLen returns the length of what begins a text and is not shown: an escape sequence, a character without width,
// the backslash of an escape. It is 0 for none. A sequence that has not ended is as long as the text.
func hiddenLen(s string) int {
	const csi = '\u009b' // ESC [ as one character
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == '\\':
		if len(s) > 1 && strings.IndexByte(markdownEscapes, s[1]) >= 0 {
			return 1
		}
		return 0
	case r == csi:
		return max(size, sequenceLen(s[size:])+size)
	case r == '\t', r == '\n', r == '\v', r == '\f', r == '\r', r == '\b':
		return 0
	case r != 0x1b:
		if unicode.IsOneOf([]*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point}, r) {
			return size
		}
		return 0
	}
	if len(s) == 1 {
		return 1
	}
	switch s[1] {
	case '[': // CSI: ECMA-48, 5.4
		return 2 + sequenceLen(s[2:])
	case ']', 'P', '_', '^', 'X': // OSC, of a link, say, DCS and others; the text that it carries is not shown
		for i := 2; i < len(s) && i < maxSecretBytes; i++ {
			switch {
			case s[i] == 0x07:
				return i + 1
			case s[i] == 0x1b:
				return min(i+2, len(s))
			case s[i] == '\n':
				return 1
			}
		}
		return 1
	case '(', ')', '#':
		return min(3, len(s))
	}
	return 2
}

// sequenceLen returns the length of a control sequence behind its beginning.
func sequenceLen(s string) int {
	for i := 0; i < len(s) && i < maxSequenceBytes; i++ {
		switch c := s[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x7e:
			return i
		}
	}
	return min(len(s), maxSequenceBytes)
}
