package redact

import (
	"strings"
	"unicode/utf8"
)

// hides reports whether a text may hold bytes that a screen or a page does not show.
func hides(s string) bool {
	for at := 0; at < len(s); at++ {
		if at = nextByte(s, at, '\\'); at < len(s) && hiddenLen(s[at:]) > 0 {
			return true
		}
	}
	return strings.IndexByte(s, 0x1b) >= 0 || strings.IndexByte(s, 0) >= 0 || strings.IndexByte(s, '\b') >= 0 ||
		strings.Contains(s, "\u200b") || strings.Contains(s, "\u00ad") || strings.Contains(s, "\ufeff")
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
	switch s[0] {
	case 0:
		return 1
	case 0xc2, 0xe2, 0xef:
		for _, c := range []string{"\u200b", "\u00ad", "\ufeff"} {
			if strings.HasPrefix(s, c) {
				return len(c)
			}
		}
		return 0
	case '\\':
		if len(s) > 1 && strings.IndexByte(markdownEscapes, s[1]) >= 0 {
			return 1
		}
		return 0
	case 0x1b:
	default:
		return 0
	}
	if len(s) == 1 {
		return 1
	}
	switch s[1] {
	case '[': // CSI: ECMA-48, 5.4
		for i := 2; i < len(s) && i < maxSequenceBytes; i++ {
			switch c := s[i]; {
			case c >= 0x40 && c <= 0x7e:
				return i + 1
			case c < 0x20 || c > 0x7e:
				return i
			}
		}
		return min(len(s), maxSequenceBytes)
	case ']': // OSC, of a link, say; the text that it carries is not shown
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
