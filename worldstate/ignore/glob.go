package ignore

import (
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// wildmatch matches a slash-separated name against the glob of a pattern.
func wildmatch(glob, name string) bool {
	if strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		name = latin(name)
	}
	return doublestar.MatchUnvalidated(glob, name)
}

// latin returns a text with a character for each byte of s: git matches bytes.
func latin(s string) string {
	out := make([]rune, len(s))
	for i := range len(s) {
		out[i] = rune(s[i])
	}
	return string(out)
}

// globOf returns a doublestar pattern that matches the names, see latin, that a gitignore pattern does: '*' and '?'
// do not match a slash; "**" between slashes (or at an end) does.
func globOf(pat string) string {
	var out strings.Builder
	for i := 0; i < len(pat); i++ {
		switch pat[i] {
		case '*':
			end := len(pat) - len(strings.TrimLeft(pat[i:], "*"))
			deep := end > i+1 && (i == 0 || pat[i-1] == '/') && (end == len(pat) || pat[end] == '/')
			switch {
			case deep && end == len(pat):
				out.WriteString("**/*") // "a/**" does not match "a"
			case deep:
				out.WriteString("**")
			default:
				out.WriteByte('*')
			}
			i = end - 1
		case '?':
			out.WriteByte('?')
		case '[':
			class, n := classOf(pat[i:])
			if n == 0 {
				return never
			}
			out.WriteString(class)
			i += n - 1
		case '\\':
			if i++; i == len(pat) {
				return never
			}
			fallthrough
		default:
			out.WriteString(literal(pat[i]))
		}
	}
	return out.String()
}

// never is a glob that matches nothing.
const never = "["

// literal returns the glob of one byte.
func literal(c byte) string {
	if strings.IndexByte(`*?[]{}\-!^`, c) >= 0 {
		return `\` + string(rune(c))
	}
	return string(rune(c))
}

// classOf returns the glob of the bracket expression that begins a text, and the expression's length: 0 if it has no
// end, or an unknown class in it. It never matches a slash.
func classOf(s string) (class string, n int) {
	class, n = "[", 1
	if n < len(s) && (s[n] == '!' || s[n] == '^') {
		class, n = "[^/", n+1
	}
	next := func() (c byte) {
		if s[n] == '\\' {
			n++
		}
		if n < len(s) {
			c = s[n]
		}
		n++
		return c
	}
	for first := n; n < len(s); {
		if s[n] == ']' && n > first {
			return class + "]", n + 1
		}
		if name, _, _ := strings.Cut(s[n:], "]"); strings.HasPrefix(name, "[:") && strings.HasSuffix(name, ":") {
			set := namedClass(strings.Trim(name, "[:"))
			if set == "" {
				return "", 0
			}
			class, n = class+set, n+len(name)+1
			continue
		}
		low := next()
		high := low
		if n+1 < len(s) && s[n] == '-' && s[n+1] != ']' {
			n++
			high = next()
		}
		if low == '/' { // no class matches a slash: git compares with FNM_PATHNAME
			low++
		}
		if high == '/' {
			high--
		}
		if low < '/' && high > '/' {
			class, low = class+literal(low)+"-.", '0'
		}
		class += literal(low) + "-" + literal(high)
	}
	return "", 0
}

// namedClass returns the ranges of a POSIX class in the C locale, without the slash; empty for none.
func namedClass(name string) string {
	return map[string]string{
		"alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": "\t ", "cntrl": "\x00-\x1f\x7f", "digit": "0-9",
		"graph": `\!-.0-~`, "lower": "a-z", "print": " -.0-~", "punct": `\!-.:-@\[-` + "`{-~",
		"space": "\t-\r ", "upper": "A-Z", "xdigit": "0-9A-Fa-f",
	}[name]
}
