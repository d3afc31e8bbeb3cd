package redact

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// positions finds the offset in the raw bytes of a JSON string for an offset in the text
// that they encode. It only moves forward.
type positions struct {
	raw      string // between the quotes
	at, text int    // offsets in both that belong together
}

// before returns where the raw bytes begin that encode the text from offset text on.
func (p *positions) before(text int) int {
	for {
		run := strings.IndexByte(p.raw[p.at:], '\\')
		if run < 0 {
			run = len(p.raw) - p.at
		}
		run = min(run, text-p.text)
		p.at += run
		p.text += run
		if p.text == text {
			return p.at
		}
		raw, size := p.escape()
		if p.text+size > text {
			return p.at // within the character
		}
		p.at += raw
		p.text += size
	}
}

// behind returns where the raw bytes end that encode the text before offset text.
func (p *positions) behind(text int) int {
	if p.before(text); p.text < text {
		raw, size := p.escape()
		p.at += raw
		p.text += size
	}
	return p.at
}

// escape returns the length of the escape at p.at, and of the text that it encodes.
func (p *positions) escape() (raw, text int) {
	if p.raw[p.at+1] != 'u' {
		return 2, 1
	}
	c, raw := unquoteRune(p.raw[p.at:])
	return raw, utf8.RuneLen(c)
}

// unquote returns the text that a valid JSON string encodes.
func unquote(quoted string) string {
	body := quoted[1 : len(quoted)-1]
	at := strings.IndexByte(body, '\\')
	if at < 0 {
		return body
	}
	out := make([]byte, 0, len(body))
	for at >= 0 {
		out = append(out, body[:at]...)
		switch c := body[at+1]; c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			c, n := unquoteRune(body[at:])
			out = utf8.AppendRune(out, c)
			at += n - 2
		default:
			out = append(out, c)
		}
		body = body[at+2:]
		at = strings.IndexByte(body, '\\')
	}
	return string(append(out, body...))
}

// unquoteRune reads the \u escape, or the pair of them, that s begins with.
func unquoteRune(s string) (rune, int) {
	const size = len(`\u0000`)
	hex := func(s string) rune {
		n, err := strconv.ParseUint(s[2:size], 16, 16)
		if err != nil {
			return utf8.RuneError
		}
		return rune(n)
	}
	c := hex(s)
	if utf16.IsSurrogate(c) && len(s) >= 2*size && s[size] == '\\' && s[size+1] == 'u' {
		if both := utf16.DecodeRune(c, hex(s[size:])); both != utf8.RuneError {
			return both, 2 * size
		}
	}
	if utf16.IsSurrogate(c) {
		c = utf8.RuneError
	}
	return c, size
}
