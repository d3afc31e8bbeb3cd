package redact

import "strings"

// maxNameBytes bounds the name before a value.
const maxNameBytes = 64

// minNamedBytes are the shortest values, by the certainty of their context.
const (
	minShoutedBytes = 6 // DB_PASSWORD=…
	minQuotedBytes  = 8 // password: "…"
	minBareBytes    = 8 // password: …
	minSpacedBytes  = 5 // DB_PASSWORD='… …'

	minPathPartBytes = 16 // a part of a path that may be random
)

// named matches the value of NAME=value, NAME: value and their quoted forms, if the keyword
// ends the name. It skips code (calls, names of variables, types), numbers, words of a
// sentence, and placeholders.
func named(s string, from, to int, kind string) (match, bool) {
	begin := from
	for begin > 0 && from-begin < maxNameBytes && nameByte(s[begin-1]) && escapeLen(s, begin) == 0 {
		begin--
	}
	shouted := !strings.ContainsFunc(s[begin:to], func(r rune) bool { return r >= 'a' && r <= 'z' })
	at := to
	for at < len(s) && isDigit(s[at]) && at-to < 3 { // PASSWORD2
		at++
	}
	name := s[begin:to]
	shut := quotes(s, at)
	at += shut
	if shut > 0 && at < len(s) && s[at] == ']' { // config["password"] =
		at++
	}
	blank := spaces(s, at)
	at += blank
	sep := separator(s, at)
	pair := false // the name is a value itself
	if n, more := valueKey(s, at); sep == 0 && n > 0 {
		sep, pair = n, true
	} else if sep == 0 && more {
		return match{from: begin, open: true}, false
	}
	// getenv("DB_PASSWORD", "…")
	if sep == 0 && shut > 0 && shouted && strings.Contains(name, "_") && at < len(s) && s[at] == ',' {
		if n := 1 + spaces(s, at+1); quotes(s, at+n) > 0 {
			sep, pair = n, true
		}
	}
	if sep == 0 && strings.HasPrefix(name, "--") {
		return option(s, begin, to, kind)
	}
	if sep == 0 {
		return spacedValue(s, begin, to, at, blank, kind)
	}
	tight := blank == 0 && sep == 1 && s[at] == '='
	yaml := sep == 1 && s[at] == ':' && strings.Contains(name, "_")
	at += sep
	blank = spaces(s, at)
	at += blank
	tight = tight && blank == 0
	quote := quotes(s, at)
	at += quote
	n, open := 0, false
	if shouted && tight && quote > 0 { // a shell's value, which includes blanks
		n, open = quotedValue(s, at, s[at-quote:at])
	}
	if n == 0 {
		n = plainValue(s, at, quote > 0, shouted || !tight)
	}
	quoted := quote > 0 && quotes(s, at+n) > 0
	if !quoted {
		n = sentenceEnd(s, at, n)
	}
	value := s[at : at+n]
	digits := strings.ContainsAny(value, "0123456789")
	if !quoted && yaml && digits && lineEnds(s, at+n) && !placeholder(value) {
		tight = shouted // POSTGRES_PASSWORD: hunter2
	}
	// password=hunter2pw of a URL, a form, an option, but not in a call
	call := at+n < len(s) && strings.IndexByte("),(", s[at+n]) >= 0
	if n >= minBareBytes && !quoted && tight && digits && !call && strings.HasSuffix(kind, "password") &&
		!dotted(value) && optionSecret(value, kind) {
		return match{start: at, end: at + n, from: begin, kind: kind, rank: rankNamed}, true
	}
	if pair && quoted && strings.ToUpper(value) == value && !mixed(value) {
		return match{from: begin, open: open}, false // the next name of a list
	}
	look := look{
		quoted: quoted, shouted: shouted && (tight || quoted || pair), password: kind == "password" && tight,
		key:   kind == "secret-key",
		camel: strings.HasSuffix(lowerASCII(name), "key") && !strings.ContainsAny(name, "_-"),
	}
	if n == 0 || !look.secret(value) {
		return match{from: begin, open: open}, false
	}
	return match{start: at, end: at + n, from: begin, kind: kind, rank: rankNamed, open: open}, true
}

// spacedValue matches NAME VALUE, if the value is random and the name is a setting's, not a word of a sentence, as
// in a Dockerfile's ENV and in "aws configure set", or if both make the row of a table.
func spacedValue(s string, begin, to, at, blank int, kind string) (match, bool) {
	cell := 0 // | NAME | VALUE |
	if at < len(s) && s[at] == '|' {
		cell = 1 + spaces(s, at+1)
	}
	if blank == 0 {
		return match{}, false
	}
	at += cell
	row := lineBegins(s, begin) && (cell > 0 || blank > 1 || s[at-1] == '\t')
	at += quotes(s, at)
	n := sentenceEnd(s, at, plainValue(s, at, false, false))
	least := minLearnedBytes
	if row && lineEnds(s, at+n) {
		least = minMixedBytes
	} else if !strings.Contains(s[begin:to], "_") {
		return match{}, false
	}
	if v := s[at : at+n]; len(v) < least || placeholder(v) || strings.ContainsAny(v, "()[]{}./\\:") || !learnable(v) {
		return match{}, false
	}
	return match{start: at, end: at + n, from: begin, kind: kind, rank: rankNamed}, true
}

// lineBegins reports whether only blanks and bars precede a byte on its line.
func lineBegins(s string, at int) bool {
	before := strings.TrimRight(s[:at], " \t|")
	return before == "" || before[len(before)-1] == '\n'
}

// lineEnds reports whether only blanks and bars follow on the line of a byte.
func lineEnds(s string, at int) bool {
	for at < len(s) && (s[at] == ' ' || s[at] == '\t' || s[at] == '|') {
		at++
	}
	return at == len(s) || s[at] == '\n' || s[at] == '\r'
}

// valueKey returns the length of what is between a name that is a value itself and its own value, as in
// {"name": "DB_PASSWORD", "value": …}, in an attribute of XML and in YAML; 0 for none. more: the text ended before.
func valueKey(s string, at int) (n int, more bool) {
	const word = "value"
	begin := at
	for at < len(s) && at-begin < maxNameBytes && (s[at] <= ' ' || strings.IndexByte(",\"'\\+-~", s[at]) >= 0 ||
		s[at-1] == '\\' && (s[at] == 'n' || s[at] == 'r')) {
		at++
	}
	if at == begin && strings.IndexByte("\"'` \t", s[at-1]) < 0 {
		return 0, false
	}
	if len(s)-at < len(word) {
		return 0, strings.HasPrefix(word, lowerASCII(s[at:]))
	}
	if !strings.EqualFold(s[at:at+len(word)], word) {
		return 0, false
	}
	at += len(word)
	at += quotes(s, at)
	at += spaces(s, at)
	sep := separator(s, at)
	if sep == 0 {
		return 0, at == len(s)
	}
	return at + sep - begin, false
}

// plainValue returns the length of a value without blanks; 0 if it is too long. joined: it may
// continue after an ampersand, since it is not in a query.
func plainValue(s string, at int, quoted, joined bool) int {
	n := 0
	for at+n < len(s) && n <= maxPasswordBytes &&
		(valueByte(s, at+n, quoted) || joined && n > 0 && ampersand(s, at+n)) {
		n++
	}
	if n > maxPasswordBytes {
		return 0
	}
	return n
}

// ampersand reports whether an ampersand is part of a value: it neither joins commands nor
// begins the next NAME=.
func ampersand(s string, at int) bool {
	end := at + 1
	if s[at] != '&' || s[at-1] == '&' || end >= len(s) || s[end] <= ' ' || strings.IndexByte("&\"'`\\", s[end]) >= 0 {
		return false
	}
	for end < len(s) && nameByte(s[end]) {
		end++
	}
	return end == at+1 || end >= len(s) || s[end] != '='
}

// quotedValue returns the length of a value up to its closing quote on the same line; 0 for
// none. open reports whether the text ends before the quote.
func quotedValue(s string, at int, quote string) (n int, open bool) {
	for n <= maxPasswordBytes {
		if at+n >= len(s) {
			return 0, true
		}
		rest := s[at+n:]
		switch c := rest[0]; {
		case strings.HasPrefix(rest, quote):
			return n, false
		case c == '\n' || c == '\r' || strings.HasPrefix(rest, `\n`) || strings.HasPrefix(rest, `\r`):
			return 0, false
		case c == '\\' && quote == `"` && len(rest) > 1: // it escapes the next quote
			n++
		}
		n++
	}
	return 0, false
}

func namesSecret(name string) bool {
	for n := 0; n < 3 && name != "" && isDigit(name[len(name)-1]); n++ { // PASSWORD2
		name = name[:len(name)-1]
	}
	for k := range strings.FieldsSeq(namedKeywords) {
		if at := len(name) - len(k); at >= 0 && strings.EqualFold(name[at:], k) {
			return true
		}
	}
	return false
}

func nameByte(c byte) bool { return isAlnum(c) || c == '_' || c == '-' || c == '.' }

// quotes returns the length of one quote with the backslashes that escape it.
func quotes(s string, at int) int {
	n := 0
	for at+n < len(s) && s[at+n] == '\\' && n < 4 {
		n++
	}
	if at+n < len(s) && (s[at+n] == '"' || s[at+n] == '\'' || s[at+n] == '`') {
		return n + 1
	}
	return 0
}

// separator returns the length of the separator between a name and its value: =, :, := or =>,
// but not a comparison.
func separator(s string, at int) int {
	rest := s[at:]
	switch rest[:min(len(rest), 2)] {
	case ":=", "=>":
		return 2
	case "==", "=~", "::":
		return 0
	}
	if strings.HasPrefix(rest, "=") || strings.HasPrefix(rest, ":") && !strings.HasPrefix(rest, "://") {
		return 1
	}
	return 0
}

// valueByte reports whether a value continues at a byte. A quoted one ends at its quote, a bare
// one also at a separator of values. A backslash is part of it unless it escapes a quote or
// white space.
func valueByte(s string, at int, quoted bool) bool {
	c := s[at]
	switch {
	case c <= ' ' || c == 0x7f || c == '"' || c == '\'' || c == '`':
		return false
	case c == '\\':
		return at+1 < len(s) && s[at+1] > ' ' && strings.IndexByte("\\\"'`nrtu", s[at+1]) < 0
	case quoted:
		return true
	}
	return strings.IndexByte("&,;<>|", c) < 0
}

// sentenceEnd returns the length of a bare value without the punctuation at its end.
func sentenceEnd(s string, at, n int) int {
	for n > 0 && strings.IndexByte(".,:)]}", s[at+n-1]) >= 0 {
		n--
	}
	return n
}

// look is the context of a value in a text.
type look struct {
	quoted   bool // between quotes
	shouted  bool // its name is in upper case, and joined to it as in a shell, or it is quoted
	password bool // its name contains password, and is joined to it
	key      bool // its name ends in SECRET_KEY
	camel    bool // its name ends in a word of code: privateKey
}

func (l look) secret(v string) bool {
	if placeholder(v) {
		return false
	}
	m := makeupOf(v)
	letters, digits, symbols := m.letters(), m.digits, m.others
	switch {
	case digits == len(v): // a number
		return l.password && (l.shouted && len(v) >= minShoutedBytes || len(v) >= minBareBytes)
	case strings.HasPrefix(v, "/"):
		return l.shouted && !pathLooking(v)
	case strings.HasPrefix(v, "./"), strings.Contains(v, "://"):
		return false // a path, an address
	case l.quoted && l.shouted:
		return len(v) >= minShoutedBytes || strings.Contains(v, " ") && len(v) >= minSpacedBytes
	case l.quoted:
		return len(v) >= minQuotedBytes && digits+symbols > 0 && letters > 0 && !strings.ContainsAny(v, "(){}[]")
	case strings.ContainsAny(v, "()[]{}*"):
		return l.shouted && len(v) >= minShoutedBytes && !strings.Contains(v, "(")
	case l.shouted:
		return len(v) >= minShoutedBytes &&
			(digits+symbols > 0 || letters == len(v) || l.password || l.key && strings.Contains(v, "-"))
	}
	// A bare value with a name in lower case is like code and prose.
	hex, number := strings.CutPrefix(strings.TrimLeft(v, "-"), "0x")
	if number && len(hex) <= 16 || l.camel && symbols == 0 && !mixed(v) {
		return false // a number; a variable
	}
	return len(v) >= minBareBytes && letters > 0 && !dotted(v) &&
		(digits >= 3 || digits > 0 && (mixed(v) || symbols > 0))
}

// pathLooking reports whether a value that begins with a slash is a path: its parts are names
// and not random.
func pathLooking(v string) bool {
	if strings.ContainsAny(v, "+=!$%^*~#@?") {
		return false
	}
	least := minQuotedBytes
	if strings.Count(v, "/") > 1 {
		least = minPathPartBytes
	}
	for part := range strings.SplitSeq(v, "/") {
		if len(part) >= least && random(part) {
			return false
		}
	}
	return true
}

// dotted reports whether a value consists of names joined by dots, as code does.
func dotted(v string) bool {
	if !strings.Contains(v, ".") {
		return false
	}
	for part := range strings.SplitSeq(v, ".") {
		if part == "" || isDigit(part[0]) || len(part) >= minLearnedBytes && random(part) && mixed(part) {
			return false
		}
		for i := range len(part) {
			if !isAlnum(part[i]) && part[i] != '_' {
				return false
			}
		}
	}
	return true
}

// mixed reports whether a value changes between letters and digits more often than a name with
// a number.
func mixed(v string) bool {
	changes := 0
	for i := 1; i < len(v); i++ {
		if isDigit(v[i]) != isDigit(v[i-1]) {
			changes++
		}
	}
	return changes >= 3
}
