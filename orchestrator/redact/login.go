package redact

import "strings"

// maxHeaderBytes is the longest cookie header that is read.
const maxHeaderBytes = 4 << 10

// cookieAttributes are the names in a Set-Cookie header that are not cookies.
const cookieAttributes = " path domain expires max-age samesite version comment priority "

// sessionWords are parts of the names of cookies that identify a session or a user.
const sessionWords = "sess sid auth token csrf xsrf jwt login remember secret pass"

// cookies returns the values of session cookies in a Cookie or Set-Cookie header, a variable that holds one, or an
// option of curl.
func cookies(s string, from, to int) (ms []match, end int, open bool) {
	at := to
	if at < len(s) && (s[at] == 's' || s[at] == 'S') {
		at++
	}
	at += quotes(s, at)
	at += spaces(s, at)
	sep := separator(s, at)
	if sep == 0 && !(from > 0 && s[from-1] == '-' && at > to) { // --cookie NAME=VALUE
		return nil, 0, at == len(s)
	}
	at += sep
	at += spaces(s, at)
	end = at
	for end < len(s) && end-at < maxHeaderBytes && s[end] != '\n' && s[end] != '\r' {
		end++
	}
	open = end == len(s)
	for at < end {
		begin := at
		for at < end && nameByte(s[at]) {
			at++
		}
		name := lowerASCII(s[begin:at])
		if name == "" || at >= end || s[at] != '=' {
			at = max(at, begin+1)
			continue
		}
		at++
		at += quotes(s, at)
		begin = at
		for at < end && strings.IndexByte(";,]} ", s[at]) < 0 && valueByte(s, at, true) {
			at++
		}
		value := s[begin:at]
		if !strings.Contains(cookieAttributes, " "+name+" ") && sessionCookie(name, value) {
			ms = append(ms, match{start: begin, end: at, kind: "cookie", rank: rankHeader})
		}
	}
	return ms, end, open
}

func sessionCookie(name, value string) bool {
	if placeholder(value) || len(value) < minNamedCookieBytes {
		return false
	}
	for w := range strings.FieldsSeq(sessionWords) {
		if strings.Contains(name, w) {
			return random(value) || len(value) >= minPathPartBytes || mixed(value)
		}
	}
	return len(value) >= minPathPartBytes && random(value)
}

// minNamedCookieBytes is the shortest value of a session cookie.
const minNamedCookieBytes = 8

// netrc matches the password of an entry in a .netrc file: machine NAME login NAME password VALUE, on one line or
// several, numbered ones, too.
func netrc(s string, from, to int) (match, bool) {
	if !wordStarts(s, from) || to < len(s) && s[to] > ' ' {
		return match{}, false
	}
	at, key := to, s[from:to]
	if strings.EqualFold(key, "default") {
		key = ""
	}
	for at < len(s) && at-to < maxCommandBytes {
		for at < len(s) && s[at] <= ' ' {
			at++
		}
		begin := at
		for at < len(s) && s[at] > ' ' {
			at++
		}
		word := s[begin:at]
		switch {
		case at == len(s) && key != "password":
			return match{from: from, open: true}, false
		case key == "password":
			word = strings.TrimRight(word, "\"'`;,\\")
			if len(word) < minAttachedBytes || placeholder(word) ||
				strings.EqualFold(s[from:to], "default") && isWord(word) {
				return match{from: from, open: at == len(s)}, false
			}
			return match{start: begin, end: begin + len(word), from: from, kind: "password", rank: rankNamed}, true
		case key != "":
			key = ""
		case word == "login" || word == "account" || word == "password" || word == "port":
			key = word
		case strings.Trim(word, "0123456789:|+→") != "": // not a line's number
			return match{}, false
		}
	}
	return match{from: from, open: at == len(s)}, false
}
