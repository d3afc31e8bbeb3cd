package redact

import (
	"encoding/base64"
	"strings"
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

// rules returns the patterns: providers' keys, headers, commands and telling names.
func rules() []rule {
	out := []rule{{keyword: pemBegin, pem: true}}
	for _, f := range keyForms() {
		set := newCharset(f.chars)
		for prefix := range strings.FieldsSeq(f.prefixes) {
			out = append(out, rule{keyword: lowerASCII(prefix), match: func(s string, from, to int) (match, bool) {
				return providerKey(s, from, to, prefix, f.kind, f.least, set)
			}})
		}
	}
	for id := range strings.FieldsSeq(awsIDs) {
		out = append(out, rule{keyword: lowerASCII(id), match: awsSecret})
	}
	for _, p := range patterns() {
		find := p.find()
		for keyword := range strings.FieldsSeq(p.keywords) {
			out = append(out, rule{keyword: keyword, match: find})
		}
	}
	out = append(out, rule{keyword: "eyj", match: jwt}, rule{keyword: "bearer", match: bearer},
		rule{keyword: "basic", match: basic}, rule{keyword: "authorization", match: authorization},
		rule{keyword: "://", match: urlUser}, rule{keyword: "machine", match: netrc},
		rule{keyword: "default", match: netrc}, rule{keyword: "cookie", pairs: cookies}, rule{keyword: lowerASCII(encodedKeyBegin), pairs: encodedKey}, rule{keyword: "\ttrue\t", match: cookieLine},
		rule{keyword: "\tfalse\t", match: cookieLine}, rule{keyword: "auth", match: encodedLogin})
	for _, f := range commandForms() {
		for name := range strings.FieldsSeq(f.commands) {
			out = append(out, rule{keyword: lowerASCII(name), match: f.command(name)})
		}
	}
	for _, k := range strings.Fields(namedKeywords) {
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
		out = append(out, rule{keyword: k, match: func(s string, from, to int) (match, bool) { return named(s, from, to, kind) }})
	}
	return out
}

// namedKeywords end the names whose values are secret.
const namedKeywords = "password passwd passphrase _pwd _pass secret token api_key apikey api-key secret_key secret_key_base " +
	"access_key private_key auth_key encryption_key signing_key master_key access-key private-key secret-key auth-key encryption-key " +
	"signing-key master-key app_key app-key application_key account_key account-key service_key license_key dockerconfigjson dockercfg " +
	"accesskey privatekey secretkey presharedkey authkey encryptionkey signingkey masterkey subscription-key"

const (
	upperDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	alnum       = upperDigits + "abcdefghijklmnopqrstuvwxyz"
	hexDigits   = "0123456789abcdefABCDEF"
	base64URL   = alnum + "-_"
	base64Std   = alnum + "+/"
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

// wordStarts reports whether a word begins at byte at: no letter, digit or underscore precedes
// it, except the end of an escape (
// , \u0026).
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

// awsSecretBytes is the length of the secret that belongs to an id of an AWS key, awsBetween how far behind the id it is searched.
const (
	awsSecretBytes = 40
	awsBetween     = 128
)

// awsSecret matches the secret behind an id of an AWS key, in a table, in a file of the console or among questions: a word of
// its length in both cases.
func awsSecret(s string, from, to int) (match, bool) {
	set := newCharset(base64Std)
	if s[from:to] == lowerASCII(s[from:to]) || !wordStarts(s, from) || set.run(s, to) != len("Q3EGTZ7XN5BWKM2A") {
		return match{}, false
	}
	for at := to + len("Q3EGTZ7XN5BWKM2A"); at < len(s) && at-to < awsBetween; at++ {
		n := set.run(s, at)
		if v := s[at : at+n]; n == awsSecretBytes && random(v) && strings.ToLower(v) != v && strings.ToUpper(v) != v && (at+n == len(s) || s[at+n] != '=') {
			return match{start: at, end: at + n, from: from, kind: "access-key", rank: rankProvider}, true
		}
		at += n
	}
	return match{from: from, open: len(s)-to < awsBetween+awsSecretBytes}, false
}

// randomKey is random for the text behind a provider's prefix, which need not have a digit: a third of GitLab's tokens of 20 bytes
// or so have none. Words behind it are joined, or of one case.
func randomKey(s string) bool {
	if random(s) {
		return true
	}
	var upper, low, digit int
	for i := range len(s) {
		switch c := s[i]; {
		case isUpper(c):
			upper++
		case isLower(c):
			low++
		case isDigit(c):
			digit++
		case c != '=':
			return false
		}
	}
	return digit >= 2 || len(s) >= minLearnedBytes && 4*upper >= len(s) && 4*low >= len(s)
}

// random reports whether a text looks random: digits among letters, and either both cases or
// many digits.
func random(s string) bool {
	var upper, low, digit int
	for i := range len(s) {
		switch c := s[i]; {
		case isUpper(c):
			upper++
		case isLower(c):
			low++
		case isDigit(c):
			digit++
		}
	}
	return digit > 0 && upper+low > 0 && (upper > 0 && low > 0 || digit >= 4 || low == 0)
}

// jwt matches a JSON web token: three base64url parts, the first two of which begin like JSON
// objects.
func jwt(s string, from, to int) (match, bool) {
	if s[from:to] != "eyJ" || !wordStarts(s, from) {
		return match{}, false
	}
	at, set := from, newCharset(base64URL)
	for part := range 3 {
		n := set.run(s, at)
		if n < 10 || n > maxSecretBytes || part == 1 && !strings.HasPrefix(s[at:], "eyJ") {
			return match{}, false
		}
		if at += n; part < 2 {
			if at >= len(s) || s[at] != '.' {
				return match{}, false
			}
			at++
		}
	}
	return match{start: from, end: at, from: from, kind: "jwt", rank: rankProvider}, true
}

func tokenByte(c byte) bool {
	return isAlnum(c) || strings.IndexByte("-._~+/=", c) >= 0
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

const (
	// minTokenBytes is the shortest credential of a header with a scheme, minBareTokenBytes of
	// one without.
	minTokenBytes     = 8
	minBareTokenBytes = 16
)

// authorization matches an Authorization header other than Bearer and Basic: a scheme and a
// credential, or a credential alone.
func authorization(s string, from, to int) (match, bool) {
	at := to + quotes(s, to)
	at += spaces(s, at)
	sep := separator(s, at)
	if sep == 0 {
		return match{}, false
	}
	at += sep
	at += spaces(s, at)
	at += quotes(s, at)
	n := credential(s, at)
	blank := spaces(s, at+n)
	second := 0
	if blank > 0 {
		second = credential(s, at+n+blank)
	}
	switch word := lowerASCII(s[at : at+n]); {
	case word == "bearer" && second >= minBareTokenBytes && scrambled(s[at+n+blank:at+n+blank+second]):
		return match{start: at + n + blank, end: at + n + blank + second, from: from, kind: "bearer-token", rank: rankHeader}, true
	case word == "bearer" || word == "basic":
		return match{}, false // they have rules of their own
	case second >= minTokenBytes && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz-") == "":
		at, n = at+n+blank, second
		if !strings.ContainsAny(s[at:at+n], "0123456789") {
			return match{}, false
		}
	case n < minBareTokenBytes || !random(s[at:at+n]):
		return match{}, false
	}
	return match{start: at, end: at + n, from: from, kind: "authorization", rank: rankHeader}, true
}

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

// credential returns the length of the token of a header at an offset; 0 if it is too long.
func credential(s string, at int) int {
	n := 0
	for at+n < len(s) && n <= maxSecretBytes && tokenByte(s[at+n]) {
		n++
	}
	for n > 0 && s[at+n-1] == '.' { // of a sentence
		n--
	}
	if n > maxSecretBytes {
		return 0
	}
	return n
}

// bearer matches the token of a Bearer header. It must contain a digit, which words of a
// sentence do not.
func bearer(s string, from, to int) (match, bool) {
	blank := spaces(s, to)
	if blank == 0 || !wordStarts(s, from) {
		return match{}, false
	}
	at := to + blank
	n := credential(s, at)
	if n < minBareTokenBytes || !strings.ContainsAny(s[at:at+n], "0123456789") {
		return match{}, false
	}
	return match{start: at, end: at + n, from: from, kind: "bearer-token", rank: rankHeader}, true
}

// basic matches the credentials of a Basic header: base64 of NAME:PASSWORD.
func basic(s string, from, to int) (match, bool) {
	blank := spaces(s, to)
	if blank == 0 || !wordStarts(s, from) {
		return match{}, false
	}
	return loginAt(s, from, to+blank)
}

// encodedLogin matches the value of a name that ends in auth, as in the configurations of Docker and npm, if it is
// base64 of NAME:PASSWORD.
func encodedLogin(s string, from, to int) (match, bool) {
	at := to + quotes(s, to)
	at += spaces(s, at)
	sep := separator(s, at)
	if sep == 0 {
		return match{}, false
	}
	at += sep
	at += spaces(s, at)
	return loginAt(s, from, at+quotes(s, at))
}

// loginAt matches base64 of NAME:PASSWORD at byte at.
func loginAt(s string, from, at int) (match, bool) {
	n := newCharset(base64Std).run(s[:min(len(s), at+maxBasicBytes+1)], at)
	if n < 6 || n > maxBasicBytes {
		return match{}, false
	}
	plain, err := base64.RawStdEncoding.DecodeString(s[at : at+n])
	if err != nil || !strings.Contains(string(plain), ":") || !printable(plain) {
		return match{}, false
	}
	for pad := 0; pad < 2 && at+n < len(s) && s[at+n] == '='; pad++ {
		n++
	}
	return match{start: at, end: at + n, from: from, kind: "basic-auth", rank: rankHeader}, true
}

const maxBasicBytes = 1 << 10

func printable(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c == 0x7f {
			return false
		}
	}
	return true
}
