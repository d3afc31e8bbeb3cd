package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"anamnesis/opstream/op"
)

// displayRunes is the length of a display argument.
const displayRunes = 50

// Display formats a call for users: the tool's name and its main argument, escaped and
// shortened in the middle to 50 characters. Of incomplete or malformed arguments it shows what
// can be read. Absolute paths within dir, the world's directory, are shown relative to it; an
// empty dir keeps them.
func Display(call op.Call, dir string) string {
	name := shorten(escape(call.Name), displayRunes)
	arg, ok := "", false
	for _, key := range op.MainArgs(call.Name) {
		if arg, ok = argument(call.Args, key); ok {
			break
		}
	}
	if !ok {
		return name
	}
	return name + "(" + shorten(escape(relative(arg, dir)), displayRunes) + ")"
}

// beside are the characters that may directly precede or follow a path in a command line.
const beside = " \t\n\"'`=:,;|&<>(){}[]"

// relative replaces paths in a text that begin with dir by relative ones, and dir itself by a
// dot.
func relative(text, dir string) string {
	dir = strings.TrimRight(dir, "/")
	if dir == "" {
		return text
	}
	var b strings.Builder
	for at := 0; ; {
		n := strings.Index(text[at:], dir)
		if n < 0 {
			b.WriteString(text[at:])
			return b.String()
		}
		start, end := at+n, at+n+len(dir)
		rest := strings.TrimLeft(text[end:], "/")
		ends := rest == "" || strings.ContainsRune(beside, rune(rest[0]))
		switch {
		case start > 0 && !strings.ContainsRune(beside, rune(text[start-1])), // within another path
			!ends && len(rest) == len(text)-end: // a longer name
			b.WriteString(text[at:end])
			at = end
			continue
		}
		b.WriteString(text[at:start])
		if ends {
			b.WriteByte('.')
		}
		at = len(text) - len(rest)
	}
}

// argument finds a top-level argument's text in complete or cut JSON.
func argument(args, key string) (string, bool) {
	var whole map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &whole) == nil {
		raw, ok := whole[key]
		if !ok {
			return "", false
		}
		var text string
		if json.Unmarshal(raw, &text) == nil {
			return text, true
		}
		return string(raw), true
	}
	return cutArgument(args, key)
}

// cutArgument reads tokens as far as possible; the last string may lack its end.
func cutArgument(args, key string) (string, bool) {
	dec := json.NewDecoder(strings.NewReader(args))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return "", false
	}
	for {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return "", false
		}
		after := int(dec.InputOffset())
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			if name != key {
				return "", false
			}
			return cutString(args[after:])
		}
		if name == key {
			var text string
			if json.Unmarshal(value, &text) == nil {
				return text, true
			}
			return string(value), true
		}
	}
}

// cutString reads `: "text that is not fin`.
func cutString(rest string) (string, bool) {
	_, rest, ok := strings.Cut(rest, `"`)
	if !ok {
		return "", false
	}
	// An escape may be cut, too: drop bytes until the rest is a string.
	const longestEscape = len(`\ud83d\ude0`)
	for n := range min(longestEscape, len(rest)) + 1 {
		var text string
		if json.Unmarshal([]byte(`"`+rest[:len(rest)-n]+`"`), &text) == nil {
			return strings.TrimSuffix(text, "\uFFFD"), true // half a surrogate pair
		}
	}
	return "", false
}

// escape makes text safe for a terminal and one line: unprintable characters, including
// direction marks, become escapes.
func escape(s string) string { return escapeBut(s, "") }

// Visible returns a foreign text, such as a server's description of its tools, with hidden
// characters (tag characters, zero-width and direction marks, terminal escapes) as escapes. It
// keeps lines and tabs.
func Visible(s string) string { return escapeBut(s, "\n\t") }

func escapeBut(s, plain string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case strings.ContainsRune(plain, r):
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}

// shorten removes the middle of a text of more than n runes.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	head := n / 2
	tail := n - 1 - head
	return string(runes[:head]) + "…" + string(runes[len(runes)-tail:])
}
