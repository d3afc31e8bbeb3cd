package tool

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"anamnesis/opstream/op"
)

// displayRunes is the length of a display argument.
const displayRunes = 50

// Display formats a call for users: the tool's name and its main argument, escaped and
// shortened in the middle to 50 characters. Of arguments that are not JSON it shows nothing.
// Absolute paths within dir, the world's directory, are shown relative to it; an empty dir
// keeps them.
func Display(call op.Call, dir string) string {
	name := shorten(escape(call.Name), displayRunes)
	var args map[string]json.RawMessage
	_ = json.Unmarshal([]byte(call.Args), &args)
	for _, key := range op.MainArgs(call.Name) {
		if raw, ok := args[key]; ok {
			var arg string
			if json.Unmarshal(raw, &arg) != nil {
				arg = string(raw)
			}
			return name + "(" + shorten(escape(relative(arg, dir)), displayRunes) + ")"
		}
	}
	return name
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
		case strings.ContainsRune("\n\t\r", r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
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
