package redact

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxEscapings is how many times a text may have been escaped.
const maxEscapings = 3

// escaped adds the known values in a text with any of their characters escaped: %2D, \u002d,
// \x2d.
func (t *table) escaped(ms []match, s string) []match {
	percent, backslash := nextByte(s, 0, '%'), nextByte(s, 0, '\\')
	for {
		i := min(percent, backslash)
		if i == len(s) {
			return ms
		}
		if escapeAt(s[i:]) == 0 {
			if i == percent {
				percent = nextByte(s, i+1, '%')
			} else {
				backslash = nextByte(s, i+1, '\\')
			}
			continue
		}
		from := wordBegin(s, i)
		to := i
		for to < len(s) && s[to] > ' ' {
			to++
		}
		ms = t.escapedWord(ms, s, from, to)
		percent, backslash = nextByte(s, to, '%'), nextByte(s, to, '\\')
	}
}

// nextByte returns the next offset of c at or after at, the text's length if there is none.
func nextByte(s string, at int, c byte) int {
	if i := strings.IndexByte(s[at:], c); i >= 0 {
		return at + i
	}
	return len(s)
}

// escapedWord is escaped for one word, s[from:to].
func (t *table) escapedWord(ms []match, s string, from, to int) []match {
	text := s[from:to]
	pos := make([]int, len(text)+1) // the offset in s of each byte of text
	for i := range pos {
		pos[i] = from + i
	}
	for range maxEscapings {
		plain, at := unescape(text)
		if len(plain) == len(text) {
			break
		}
		for i := range at {
			at[i] = pos[at[i]]
		}
		text, pos = plain, at
		for _, m := range t.knownIn(text) {
			m.start, m.end, m.from = pos[m.start], pos[m.end], pos[m.from]
			ms = append(ms, m)
		}
	}
	return ms
}

// knownIn returns the known values of a text.
func (t *table) knownIn(s string) (ms []match) {
	t.words.each(s, func(word, to int) {
		if word >= t.rules {
			ms = t.forms[word-t.rules].match(ms, s, to)
		}
	})
	return ms
}

// unescape returns a text without its escapes, and the original offset of each of its bytes
// and of its end.
func unescape(s string) (string, []int) {
	out, at := make([]byte, 0, len(s)), make([]int, 0, len(s)+1)
	for i := 0; i < len(s); {
		n := escapeAt(s[i:])
		if n == 0 {
			out, at = append(out, s[i]), append(at, i)
			i++
			continue
		}
		had := len(out)
		code, _ := strconv.ParseUint(strings.TrimLeft(s[i:i+n], `%\ux`), 16, 16)
		if n == len(`\u002d`) {
			out = utf8.AppendRune(out, rune(code))
		} else {
			out = append(out, byte(code))
		}
		for range len(out) - had {
			at = append(at, i)
		}
		i += n
	}
	return string(out), append(at, len(s))
}

// escapeAt returns the length of the escape that begins a text; 0 for none.
func escapeAt(s string) int {
	n := 0
	switch {
	case s[0] == '%':
		n = len("%2d")
	case strings.HasPrefix(s, `\u`):
		n = len(`\u002d`)
	case strings.HasPrefix(s, `\x`):
		n = len(`\x2d`)
	}
	if n == 0 || len(s) < n {
		return 0
	}
	for _, c := range []byte(s[min(n-2, 2):n]) {
		if !isDigit(c) && (lower(c) < 'a' || lower(c) > 'f') {
			return 0
		}
	}
	return n
}
