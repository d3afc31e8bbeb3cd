package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxSchemeBytes and maxUserBytes bound the parts of a URL before its password,
	// maxPasswordBytes the password. minUserTokenBytes is the shortest user that counts as a
	// token.
	maxSchemeBytes    = 24
	maxUserBytes      = 256
	maxPasswordBytes  = 512
	minUserTokenBytes = 20
)

// urlUser matches the password in SCHEME://USER:PASSWORD@HOST, and a token in place of the
// user.
func urlUser(s string, from, to int) (match, bool) {
	lead := from
	for lead > 0 && from-lead <= maxSchemeBytes && (isAlnum(s[lead-1]) || strings.IndexByte("+-.", s[lead-1]) >= 0) {
		lead--
	}
	if from-lead < 2 || from-lead > maxSchemeBytes || to < len(s) && s[to] == '[' {
		return match{}, false
	}
	colon, at := userInfo(s, to)
	if at < 0 {
		return match{}, false
	}
	m := match{start: colon + 1, end: at, from: lead, kind: "url-password", rank: rankHeader}
	user := s[to:at]
	if colon >= 0 {
		user = s[to:colon]
	}
	if len(user) >= minUserTokenBytes && random(user) && !strings.Contains(user, "@") {
		// https://TOKEN@…, https://TOKEN:x-oauth-basic@…
		m.start, m.kind = to, "url-token"
		return m, true
	}
	password := s[colon+1 : at]
	n := len(password)
	return m, colon >= 0 && colon-to <= maxUserBytes && n >= 3 && n <= maxPasswordBytes && !placeholder(password)
}

// userInfo finds the colon before a URL's password and the @ after it; -1 for a missing one. A
// password may hold a slash, a question mark or a number sign if it cannot be a path: no port
// precedes it.
func userInfo(s string, to int) (colon, at int) {
	colon, at = -1, -1
	first := -1 // @, with or without a colon before it
	deep := false
	for i := to; i < len(s) && i-to <= maxUserBytes+maxPasswordBytes; i++ {
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(s[i:])
			port := colon >= 0 && strings.Trim(s[colon+1:i], "0123456789") == "" && i > colon+1
			if first >= 0 || port || !unicode.In(r, unicode.L, unicode.M, unicode.N) {
				return finish(s, colon, first, at) // the URL has ended; prose follows without a blank
			}
			i += size - 1
		case c <= ' ' || c == 0x7f || strings.IndexByte("\"'`<>\\|,()", c) >= 0, c == '[' && beginsMarker(s[i:]):
			return finish(s, colon, first, at)
		case c == '/' || c == '?' || c == '#':
			if first >= 0 || colon < 0 || !deep && strings.Trim(s[colon+1:i], "0123456789") == "" {
				return finish(s, colon, first, at)
			}
			deep = true
		case c == ':' && colon < 0:
			colon = i
		case c == '@':
			if first < 0 {
				first = i
			}
			if colon >= 0 {
				at = i
			}
		}
	}
	return finish(s, colon, first, at)
}

// finish returns the end of a URL's user information: at the last @ after the colon, or at the
// only one.
func finish(s string, colon, first, at int) (int, int) {
	if at >= 0 && !strings.HasPrefix(s[at:], "@sha256:") { // no user: the digest of an image
		return colon, at
	}
	if at < 0 && first >= 0 {
		return -1, first
	}
	return -1, -1
}

// placeholder reports whether a value is a placeholder for a secret: a variable, a telling
// word, dots and stars.
func placeholder(v string) bool {
	if strings.Trim(v, "*.xX-_#?•…") == "" {
		return true
	}
	if v[0] == '$' {
		return variable(v[1:])
	}
	if strings.ContainsAny(v[:1], "%{<[(&`") || strings.Contains(v, "${") || strings.Contains(v, "{{") {
		return true
	}
	v = strings.Trim(lowerASCII(v), "-_.")
	for _, p := range []string{"your", "example", "placeholder", "changeme", "change_me", "redacted", "dummy",
		"process.env", "os.environ", "os.getenv", "env."} {
		if strings.HasPrefix(v, p) {
			return true
		}
	}
	switch v {
	case "password", "passwd", "pass", "secret", "token", "true", "false", "null", "none", "nil", "undefined",
		"required", "optional", "string", "bool", "empty":
		return true
	}
	return false
}

// variable reports whether the text after a dollar sign is a variable, a command or a
// parameter: $NAME, $name, $name->field, ${…}, $(…), $1. A name in lower case with a number in
// it is not: it is a password's beginning.
func variable(v string) bool {
	n, digits, lowers := 0, 0, 0
	for n < len(v) && (isAlnum(v[n]) || v[n] == '_') {
		switch {
		case isDigit(v[n]):
			digits++
		case isLower(v[n]):
			lowers++
		}
		n++
	}
	switch {
	case n == 0:
		return v == "" || strings.IndexByte("({$'\"?@*#!-", v[0]) >= 0
	case isDigit(v[0]):
		return digits == len(v)
	case lowers == 0:
		return true
	case n == len(v):
		return digits < 2
	}
	return strings.IndexByte(".-[:/", v[n]) >= 0
}
