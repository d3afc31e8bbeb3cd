package redact

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// anchorBytes is the part of a form that is searched as a word; the rest, in which a line may end, is
// compared at the match.
const anchorBytes = 8

// form is one way a known value may appear in a text.
type form struct {
	secret Secret // the secret that it encodes
	text   string
	word   string // the part that is searched
	at     int    // where word begins in text
	// encoded: line ends may occur within it. It is base64, hex, or a long value in one word.
	encoded bool
	anyCase bool // hex, in either case
	// before and behind report that the adjacent character also holds some bits of the value.
	before, behind bool
}

// formsOf returns the forms of a value: plain, with the blanks of a query, and, if its random part is long
// enough, in base64 and hex. [table.escaped] finds the escapes of JSON, of JSON within JSON and of URLs.
func formsOf(s Secret) []form {
	whole, _ := unescape(s.Value, `%\\`) // if other characters of it were escaped, too
	parts := randomParts(s.Value)
	plain := append([]string{s.Value, strings.ReplaceAll(s.Value, " ", "+"), whole}, parts...)
	plain = slices.DeleteFunc(plain, func(text string) bool { return len(text) < MinKnownBytes })
	slices.Sort(plain)
	var out []form
	for _, text := range slices.Compact(plain) {
		f := form{secret: s, text: text, word: text}
		if len(text) >= 2*anchorBytes && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' }) {
			out = append(out, anchored(f)...) // a screen or a mail may wrap it
		}
		if !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' }) {
			f.word = text[:min(len(text), 2*anchorBytes)]
		}
		out = append(out, f)
	}
	for _, part := range parts {
		out = append(out, encodedForms(s, part)...)
	}
	return out
}

// encodedForms returns a value in hex and in base64, with both alphabets and at each of the
// three offsets in a group of three bytes. Only characters that the value alone determines are
// included.
func encodedForms(s Secret, value string) []form {
	out := anchored(form{secret: s, text: hex.EncodeToString([]byte(value)), anyCase: true})
	for lead := range 3 {
		from, to := (8*lead+5)/6, 8*(lead+len(value))/6
		f := form{secret: s, before: 8*lead%6 != 0, behind: 8*(lead+len(value))%6 != 0}
		bytes := append(make([]byte, lead), value...)
		for _, alphabet := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			f.text = alphabet.EncodeToString(bytes)[from:to]
			out = append(out, anchored(f)...)
		}
	}
	return out
}

// anchored returns an encoded form twice: with its first bytes as the word, and with the next
// ones. A line may end within either, not within both.
func anchored(f form) []form {
	f.encoded = true
	first, second := f, f
	n := min(anchorBytes, len(f.text)/2)
	first.word = f.text[:n]
	second.at, second.word = n, f.text[n:2*n]
	return []form{first, second}
}

// randomParts returns the random parts of a key: the key without its prefixes (sk-proj-, ghp_,
// AKIA), and the longest of its parts, if that is a secret on its own.
func randomParts(v string) []string {
	for _, p := range []string{"AKIA", "ASIA", "AIza"} {
		if rest, ok := strings.CutPrefix(v, p); ok && learnable(rest) {
			v = rest
		}
	}
	for {
		i := strings.IndexAny(v, "-_.")
		if i < 1 || i > maxPrefixBytes || random(v[:i]) || !learnable(v[i+1:]) {
			break
		}
		v = v[i+1:]
	}
	longest := ""
	for part := range strings.FieldsFuncSeq(v, func(r rune) bool { return strings.ContainsRune("-_.", r) }) {
		if len(part) > len(longest) && len(part) >= minLearnedBytes && learnable(part) &&
			!strings.HasPrefix(part, "eyJ") {
			longest = part
		}
	}
	if longest == "" || longest == v {
		return []string{v}
	}
	return []string{v, longest}
}

// maxPrefixBytes is the longest prefix of a key: "sandbox", "api03".
const maxPrefixBytes = 10

// match adds the known value of the form if its word ends at byte end. A value over several
// lines becomes a match for each line, so that a text keeps its lines.
func (f *form) match(ms []match, s string, end int) []match {
	at := end - len(f.word)
	from, to := at-f.at, at-f.at+len(f.text)
	if f.encoded {
		if from, to = f.within(s, at); to == 0 {
			return ms
		}
	} else if to > len(s) || s[from:to] != f.text {
		return ms
	}
	return appendLines(ms, s, match{start: from, end: to, from: from, kind: f.secret.Kind, value: f.secret.Value,
		rank: rankKnown, byLine: !f.encoded})
}

// appendLines appends a match: one over several lines as a match for each line, so that the text keeps its lines.
func appendLines(ms []match, s string, m match) []match {
	if !strings.Contains(s[m.start:m.end], "\n") {
		return append(ms, m)
	}
	from := m.start
	for line := range strings.SplitSeq(s[m.start:m.end], "\n") {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "-----") {
			m.start = from + strings.Index(line, text)
			m.end = m.start + len(text)
			if m.byLine {
				m.value = text
			}
			ms = append(ms, m)
		}
		from += len(line) + 1
	}
	return ms
}

// within returns the range of an encoded form whose word begins at byte at, including adjacent
// characters that hold some of its bits; 0, 0 if it does not match.
func (f *form) within(s string, at int) (from, to int) {
	same := func(a, b byte) bool { return a == b || f.anyCase && lower(a) == b }
	from, to = at, at
	// The word may be anywhere in the form: the rest is compared in both directions.
	for i := f.at; i < len(f.text); {
		if to < len(s) && same(s[to], f.text[i]) {
			i, to = i+1, to+1
		} else if n := breakBehind(s, to); n > 0 {
			to += n
		} else {
			return 0, 0
		}
	}
	for i := f.at; i > 0; {
		if from > 0 && same(s[from-1], f.text[i-1]) {
			i, from = i-1, from-1
		} else if n := breakBefore(s, from); n > 0 {
			from -= n
		} else {
			return 0, 0
		}
	}
	if n := breakBefore(s, from); f.before && from-n > 0 && base64Byte(s[from-n-1]) {
		from -= n + 1
	}
	if n := breakBehind(s, to); f.behind && to+n < len(s) && base64Byte(s[to+n]) {
		to += n + 1
		for pad := 0; pad < 2 && to < len(s) && s[to] == '='; pad++ {
			to++
		}
	}
	return from, to
}

func base64Byte(c byte) bool { return isAlnum(c) || strings.IndexByte("+/-_", c) >= 0 }

// breakBehind returns the length of the line end at byte at with the indentation of the next
// line; 0 for none. A shell ends a line that continues with a backslash, quoted-printable with =.
func breakBehind(s string, at int) int {
	n := 0
	if at < len(s) && (s[at] == '\\' || s[at] == '=') {
		n++
	}
	if at+n < len(s) && s[at+n] == '\r' {
		n++
	}
	if at+n >= len(s) || s[at+n] != '\n' {
		return 0
	}
	return n + 1 + spaces(s, at+n+1)
}

// breakBefore is breakBehind for the line end that ends at byte at.
func breakBefore(s string, at int) int {
	n := 0
	for at-n > 0 && n <= maxBlanks && (s[at-n-1] == ' ' || s[at-n-1] == '\t') {
		n++
	}
	if at-n <= 0 || s[at-n-1] != '\n' {
		return 0
	}
	if n++; at-n > 0 && s[at-n-1] == '\r' {
		n++
	}
	if at-n > 0 && (s[at-n-1] == '\\' || s[at-n-1] == '=') {
		n++
	}
	return n
}
