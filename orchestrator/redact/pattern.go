package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
	"sync"

	"anamnesis/anamnesis/shell"
)

// maxSecretBytes is the longest secret that a pattern matches. The beginning of a longer value
// is not a secret of that kind.
const maxSecretBytes = 8 << 10

// rule is a pattern with the keyword that triggers it.
type rule struct {
	keyword string // lower case
	// match tries the pattern at the keyword, which is s[from:to].
	match func(s string, from, to int) (match, bool)
	// pairs, in place of match, returns several secrets, where it ended, and whether more text may hold others.
	pairs func(s string, from, to int) (ms []match, end int, open bool)
	pem   bool // the keyword begins a private key; see pem.go
}

// rules returns the patterns: providers' keys, headers, commands and telling names. All Redactors share them, because
// their expressions take milliseconds to compile.
var rules = sync.OnceValue(func() []rule {
	out := []rule{{keyword: pemBegin, pem: true}}
	for _, f := range keyForms() {
		set := newCharset(f.chars)
		for prefix := range strings.FieldsSeq(f.prefixes) {
			out = append(out, rule{keyword: lowerASCII(prefix), match: func(s string, from, to int) (match, bool) {
				return providerKey(s, from, to, prefix, f.kind, f.least, set)
			}})
		}
	}
	add := func(keywords string, match func(s string, from, to int) (match, bool)) {
		for keyword := range strings.SplitSeq(keywords, " ") {
			out = append(out, rule{keyword: keyword, match: match})
		}
	}
	add(lowerASCII(awsIDs), awsSecret)
	for _, p := range patterns() {
		add(p.keywords, p.find())
	}
	for _, h := range headers() {
		add(h.keywords, h.find())
	}
	add("://", urlUser)
	add("machine default", netrc)
	out = append(out, rule{keyword: "cookie", pairs: cookies},
		rule{keyword: lowerASCII(encodedKeyBegin), pairs: encodedKey})
	for _, f := range commandForms() {
		for name := range strings.FieldsSeq(f.commands) {
			add(lowerASCII(name), f.command(name))
		}
	}
	for k := range strings.FieldsSeq(namedKeywords) {
		kind := kindName(strings.Trim(k, "_"))
		switch kind {
		case "passwd", "pwd", "pass":
			kind = "password"
		case "secret-key-base":
			kind = "secret-key"
		default:
			if stem, ok := strings.CutSuffix(kind, "key"); ok && stem != "" && !strings.HasSuffix(stem, "-") {
				kind = stem + "-key"
			}
		}
		add(k, func(s string, from, to int) (match, bool) { return named(s, from, to, kind) })
	}
	return out
})

// namedKeywords end the names whose values are secret.
const namedKeywords = `
password passwd passphrase _pwd _pass secret token api_key apikey api-key secret_key secret_key_base access_key
private_key auth_key encryption_key signing_key master_key access-key private-key secret-key auth-key encryption-key
signing-key master-key app_key app-key application_key account_key account-key service_key license_key
dockerconfigjson dockercfg accesskey privatekey secretkey presharedkey authkey encryptionkey signingkey masterkey
subscription-key`

const (
	lowerLetters = "abcdefghijklmnopqrstuvwxyz"
	upperDigits  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	alnum        = upperDigits + lowerLetters
	hexDigits    = "0123456789abcdefABCDEF"
	base64URL    = alnum + "-_"
	base64Std    = alnum + "+/"
)

// charset is a set of bytes.
type charset [256]bool

func newCharset(chars string) *charset {
	var c charset
	for i := range len(chars) {
		c[chars[i]] = true
	}
	return &c
}

// run returns how many bytes of s from at are in the set.
func (c *charset) run(s string, at int) int {
	n := 0
	for at+n < len(s) && c[s[at+n]] {
		n++
	}
	return n
}

// wordStarts reports whether a word begins at byte at: no letter, digit or underscore precedes it, except the end of
// an escape (\n, \u0026).
func wordStarts(s string, at int) bool {
	if at == 0 {
		return true
	}
	if c := s[at-1]; !isAlnum(c) && c != '_' {
		return true
	}
	return escapeLen(s, at) > 0
}

// escapeLen returns the length of the JSON escape that ends at byte at and is not a letter or
// digit, or of a URL's; 0 for none.
func escapeLen(s string, at int) int {
	if at >= 3 && s[at-3] == '%' {
		if _, n := escapeAt(s[at-3:]); n == 3 {
			return 3
		}
	}
	if at >= 2 && s[at-2] == '\\' && strings.IndexByte("nrtbf", s[at-1]) >= 0 {
		return 2
	}
	if at >= 6 && s[at-6] == '\\' && s[at-5] == 'u' && s[at-4] == '0' && s[at-3] == '0' {
		return 6
	}
	return 0
}

// providerKey matches a keyword, case-sensitively, followed by at least least bytes of the set
// that look random, which names of tests and classes do not.
func providerKey(s string, from, to int, keyword, kind string, least int, set *charset) (match, bool) {
	if s[from:to] != keyword || !wordStarts(s, from) {
		return match{}, false
	}
	n := set.run(s, to)
	if kind == "aws-key-id" && n != least || kind == "square-token" && n > 64 { // longer: base64 of something else
		return match{}, false
	}
	if n < least || n > maxSecretBytes || !randomKey(s[to:to+n]) {
		return match{none: to + n - maxSecretBytes}, false
	}
	if kind == "openai-key" {
		switch {
		case strings.HasPrefix(s[to:], "ant-"):
			kind = "anthropic-key"
		case strings.HasPrefix(s[to:], "or-"):
			kind = "openrouter-key"
		}
	}
	return match{start: from, end: to + n, from: from, kind: kind, rank: rankProvider}, true
}

const (
	awsIDBytes     = 16  // behind the prefix of an id
	awsSecretBytes = 40  // of the secret that belongs to an id
	awsBetween     = 128 // how far behind the id it is searched
)

// awsSecret matches the secret behind an id of an AWS key, in a table, in a console's file or among questions: a word
// of its length in both cases.
func awsSecret(s string, from, to int) (match, bool) {
	set := newCharset(base64Std)
	if s[from:to] == lowerASCII(s[from:to]) || !wordStarts(s, from) || set.run(s, to) != awsIDBytes {
		return match{}, false
	}
	for at := to + awsIDBytes; at < len(s) && at-to < awsBetween; at++ {
		n := set.run(s, at)
		if v := s[at : at+n]; n == awsSecretBytes && random(v) && strings.ToLower(v) != v && strings.ToUpper(v) != v &&
			(at+n == len(s) || s[at+n] != '=') {
			return match{start: at, end: at + n, from: from, kind: "access-key", rank: rankProvider}, true
		}
		at += n
	}
	return match{from: from, open: len(s)-to < awsBetween+awsSecretBytes}, false
}

// makeup counts the bytes of a text by their kind.
type makeup struct{ upper, lower, digits, wide, joints, others int }

func makeupOf(s string) (m makeup) {
	for i := range len(s) {
		switch c := s[i]; {
		case isUpper(c):
			m.upper++
		case isLower(c):
			m.lower++
		case isDigit(c):
			m.digits++
		case c >= 0x80:
			m.wide++
		case c == '-', c == '_', c == '.':
			m.joints++
		default:
			m.others++
		}
	}
	return m
}

func (m makeup) letters() int { return m.upper + m.lower + m.wide }

// randomKey is random for the text behind a provider's prefix, which need not have a digit: about a third of GitLab's
// tokens of 20 bytes have none. Words behind it are joined, or of one case.
func randomKey(s string) bool {
	m := makeupOf(strings.ReplaceAll(s, "=", ""))
	cased := len(s) >= minLearnedBytes && 4*m.upper >= len(s) && 4*m.lower >= len(s)
	return random(s) || m.wide+m.joints+m.others == 0 && (m.digits >= 2 || cased)
}

// random reports whether a text looks random: digits among letters, and either both cases or
// many digits.
func random(s string) bool {
	m := makeupOf(s)
	return m.digits > 0 && m.upper+m.lower > 0 && (m.upper > 0 && m.lower > 0 || m.digits >= 4 || m.lower == 0)
}

// header is the form of a credential that follows a word.
type header struct {
	kind     string
	keywords string // separated by blanks; lower case, one begins each match
	match    string // a regexp from the keyword on; its last group is the secret. With \b a word begins there.
	// secret decides by the last group and the one before it; nil: the form is a provider's, and looks random.
	secret func(before, v string) bool
}

// Parts of the patterns of headers: the sign between a name and its value, a credential of 16 bytes or more,
// and base64 of a login.
const (
	quoteForm  = `(?:\\{0,4}["'` + "`" + `])?`
	equalsForm = quoteForm + `[ \t]{0,65}(?::=|=>|[=:])[ \t]{0,65}` + quoteForm + `[ \t]{0,65}`
	tokenForm  = `([\w.~+/=-]{15,}[\w~+/=-])`
	loginForm  = `([A-Za-z0-9+/]{6,1000}={0,2})`
)

func headers() []header {
	return []header{
		{"jwt", "eyj", `\b(eyJ[\w-]{7,}\.eyJ[\w-]{7,}\.[\w-]{10,})`, nil},
		{"bearer-token", "bearer", `\b(?i:bearer)[ \t]{1,65}` + tokenForm, hasDigit},
		{"bearer-token", "authorization", `(?i:authorization)` + equalsForm + `(?i:bearer)[ \t]{1,65}` + tokenForm,
			func(_, v string) bool { return scrambled(v) }},
		{"basic-auth", "basic", `\b(?i:basic)[ \t]{1,65}` + loginForm, encodedLogin},
		{"basic-auth", "auth", `(?i:auth)` + equalsForm + loginForm, encodedLogin},
		{"authorization", "authorization",
			`(?i:authorization)` + equalsForm + `([A-Za-z-]+)[ \t]{1,65}([\w.~+/=-]{7,}[\w~+/=-])`,
			func(scheme, v string) bool {
				return hasDigit(scheme, v) && !shell.InList("bearer basic", strings.ToLower(scheme))
			}},
		{"authorization", "authorization", `(?i:authorization)` + equalsForm + tokenForm,
			func(_, v string) bool { return random(v) }},
		{"cookie", "\ttrue\t \tfalse\t",
			`\t\w+(?:\t[^\t\n]*){3}\t([^\t\n]+)\t((?:[^\t\r\n\\]|\\[^nr])+)`,
			func(name, v string) bool { return sessionCookie(lowerASCII(name), v) }},
	}
}

// find returns a function that matches the header at a keyword.
func (h header) find() func(s string, from, to int) (match, bool) {
	re := regexp.MustCompile("^" + h.match)
	return func(s string, from, to int) (match, bool) {
		if strings.HasPrefix(h.match, `\b`) && !wordStarts(s, from) {
			return match{}, false
		}
		loc := re.FindStringSubmatchIndex(s[from:min(len(s), to+maxPatternBytes+maxSecretBytes)])
		if loc == nil {
			return match{}, false
		}
		n := len(loc)
		m := match{start: from + loc[n-2], end: from + loc[n-1], from: from, kind: h.kind, rank: rankHeader}
		v := s[m.start:m.end]
		if h.secret == nil {
			m.rank = rankProvider
			return m, len(v) <= maxSecretBytes && random(v)
		}
		return m, len(v) <= maxSecretBytes && h.secret(s[from+loc[n-4]:from+loc[n-3]], v)
	}
}

// spaces returns the number of blanks at an offset, up to a few: more indicate a table or a
// drawing.
func spaces(s string, at int) int {
	n := 0
	for at+n < len(s) && n <= maxBlanks && (s[at+n] == ' ' || s[at+n] == '\t') {
		n++
	}
	return n
}

// maxBlanks is the widest gap between a name and its value: programs align them.
const maxBlanks = 64

// scrambled reports whether letters change from lower to upper case more often than in joined
// words: one in five.
func scrambled(s string) bool {
	changes := 0
	for i := 1; i < len(s); i++ {
		if isLower(s[i-1]) && isUpper(s[i]) {
			changes++
		}
	}
	return 5*changes >= len(s)
}

// encodedLogin reports whether a text is base64 of NAME:PASSWORD.
func encodedLogin(_, v string) bool {
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(v, "="))
	return err == nil && strings.Contains(string(plain), ":") &&
		!strings.ContainsFunc(string(plain), func(r rune) bool { return r < ' ' || r == 0x7f })
}

func hasDigit(_, v string) bool { return strings.ContainsAny(v, "0123456789") }
