package redact

import "strings"

// maxCommandBytes is how far after a command's name its options are searched.
const maxCommandBytes = 512

// minOptionBytes is the shortest password after an option that also names a user, whose form is
// unambiguous.
const minOptionBytes = 2

// curl matches the password in curl … -u USER:PASSWORD, and after the other forms of that
// option, up to the end of the command.
func curl(s string, from, to int) (match, bool) {
	if !wordStarts(s, from) || to < len(s) && s[to] > ' ' {
		return match{}, false
	}
	at := to
	for at < len(s) && at-to <= maxCommandBytes {
		switch c := s[at]; {
		case c == '\n' && s[at-1] != '\\', strings.IndexByte("|;", c) >= 0,
			c == '\\' && at+1 < len(s) && (s[at+1] == 'n' || s[at+1] == 'r'), strings.HasPrefix(s[at:], "curl "):
			return match{}, false // the command is over
		case c == '-' && s[at-1] <= ' ':
			if n := userOption(s, at); n > 0 {
				if m, ok := userPassword(s, from, at+n); ok || m.open {
					return m, ok
				}
			}
		}
		at++
	}
	return match{from: from, open: at == len(s)}, false
}

// userOption returns the length of an option that takes USER:PASSWORD, including what precedes
// its value; 0 for none.
func userOption(s string, at int) int {
	for _, long := range []string{"--user", "--proxy-user"} {
		if strings.HasPrefix(s[at:], long) {
			n := len(long)
			if blank := spaces(s, at+n); blank > 0 {
				return n + blank
			}
			if at+n < len(s) && s[at+n] == '=' {
				return n + 1
			}
		}
	}
	n := 1
	for at+n < len(s) && (isLower(s[at+n]) || isUpper(s[at+n])) && s[at+n-1] != 'u' && s[at+n-1] != 'U' { // -su
		n++
	}
	if c := s[at+n-1]; c != 'u' && c != 'U' {
		return 0
	}
	return n + spaces(s, at+n)
}

// userPassword matches the password of USER:PASSWORD.
func userPassword(s string, from, at int) (match, bool) {
	quote := quotes(s, at)
	at += quote
	user := 0
	for at+user < len(s) && user <= maxUserBytes && s[at+user] != ':' && valueByte(s, at+user, false) {
		user++
	}
	if user == 0 || at+user >= len(s) || s[at+user] != ':' {
		return match{from: from, open: at+user >= len(s)}, false
	}
	begin := at + user + 1
	n, open := 0, false
	if quote > 0 {
		n, open = quotedValue(s, begin, s[at-quote:at])
	}
	if n == 0 {
		n = plainValue(s, begin, quote > 0, false)
	}
	if n < minOptionBytes || placeholder(s[begin:begin+n]) {
		return match{from: from, open: open}, false
	}
	return match{start: begin, end: begin + n, from: from, kind: "password", rank: rankNamed, open: open}, true
}

// option matches the value of --password VALUE, if the keyword ends the option's name. In
// texts, words and names of files follow such options, so a value must hold more than letters.
func option(s string, begin, to int, kind string) (match, bool) {
	at := to + spaces(s, to)
	if at == to {
		return match{}, false
	}
	quote := quotes(s, at)
	at += quote
	n, open := 0, false
	if quote > 0 {
		n, open = quotedValue(s, at, s[at-quote:at])
	}
	if n == 0 {
		n = plainValue(s, at, quote > 0, false)
	}
	if quote == 0 {
		n = sentenceEnd(s, at, n)
	}
	if n < minShoutedBytes || !optionSecret(s[at:at+n], kind) {
		return match{from: begin, open: open}, false
	}
	return match{start: at, end: at + n, from: begin, kind: kind, rank: rankNamed, open: open}, true
}

func optionSecret(v, kind string) bool {
	if placeholder(v) || strings.ContainsAny(v[:1], "-~@./") || strings.ContainsAny(v, "()[]{}*") || dotted(v) ||
		strings.Contains(strings.TrimRight(v, "="), "=") || strings.Contains(v, "://") || strings.Contains(v, "/") && pathLooking("/"+v) {
		return false
	}
	var letters, others int
	for i := range len(v) {
		switch c := v[i]; {
		case isLower(c), isUpper(c), c >= 0x80:
			letters++
		case c != '-' && c != '_' && c != '.' && c != ' ':
			others++
		}
	}
	return others > 0 && (letters > 0 || kind == "password")
}
