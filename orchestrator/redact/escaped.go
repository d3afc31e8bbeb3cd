package redact

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxEscapings is how many times a text may have been escaped.
const maxEscapings = 5

// escaped adds the known values in a text with any of their characters escaped: %2D, \u002d, \x2d, \n. It returns
// the length of the longest suffix that begins such a value.
func (t *table) escaped(ms []match, s string) (_ []match, partial int) {
	if len(t.forms) == 0 {
		return ms, 0
	}
	text, pos := s, []int(nil)
	for range maxEscapings {
		plain, at := unescape(text, `%\`)
		if len(plain) == len(text) {
			break
		}
		for i := range at {
			if pos != nil {
				at[i] = pos[at[i]]
			}
		}
		text, pos = plain, at
		more, n := t.knownIn(text)
		partial = max(partial, len(s)-pos[len(text)-n])
		for _, m := range more {
			m.start, m.end, m.from = pos[m.start], pos[m.end], pos[m.from]
			ms = append(ms, m)
		}
	}
	return ms, partial
}

// knownIn returns the known values of a text, and the length of the longest suffix that begins one.
func (t *table) knownIn(s string) (ms []match, partial int) {
	partial = t.words.each(s, func(word, to int) {
		if word >= t.rules {
			ms = t.forms[word-t.rules].match(ms, s, to)
		}
	})
	return ms, partial
}

// unescape returns a text without its escapes, each of which begins with one of some bytes, and the offset in s of
// each of its bytes and of its end; no offsets, if there is no such byte.
func unescape(s, begins string) (string, []int) {
	if !strings.ContainsAny(s, begins) {
		return s, nil
	}
	out, at := make([]byte, 0, len(s)), make([]int, 0, len(s)+1)
	for i := 0; i < len(s); {
		plain, n := "", 0
		if strings.IndexByte(begins, s[i]) >= 0 {
			plain, n = escapeAt(s[i:])
		}
		if n == 0 {
			plain, n = s[i:i+1], 1
		}
		for j := range len(plain) {
			out, at = append(out, plain[j]), append(at, i)
		}
		i += n
	}
	return string(out), append(at, len(s))
}

// unquote returns the text that a valid JSON string encodes, and the offset in it of each byte; see unescape.
func unquote(quoted string) (string, []int) { return unescape(quoted[1:len(quoted)-1], `\`) }

// escapeAt returns what the escape that begins a text stands for, and its length; 0 for none.
func escapeAt(s string) (plain string, n int) {
	hex := func(from, to int) (code uint64, ok bool) {
		if to > len(s) {
			return 0, false
		}
		code, err := strconv.ParseUint(s[from:to], 16, 16)
		return code, err == nil
	}
	switch {
	case s[0] == '%':
		if code, ok := hex(1, 3); ok {
			return string([]byte{byte(code)}), 3
		}
	case len(s) < 2:
	case s[1] == 'x':
		if code, ok := hex(2, 4); ok {
			return string([]byte{byte(code)}), 4
		}
	case s[1] == 'u':
		first, ok := hex(2, 6)
		if !ok {
			return "", 0
		}
		// A character above U+FFFF is escaped as two surrogates.
		if second, ok := hex(8, 12); ok && s[6:8] == `\u` {
			if both := utf16.DecodeRune(rune(first), rune(second)); both != utf8.RuneError {
				return string(both), 12
			}
		}
		return string(rune(first)), 6
	case strings.IndexByte(`"\/'`, s[1]) >= 0:
		return s[1:2], 2
	default:
		if i := strings.IndexByte("ntrbf", s[1]); i >= 0 {
			return "\n\t\r\b\f"[i : i+1], 2
		}
	}
	return "", 0
}
