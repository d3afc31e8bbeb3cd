package redact

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// secretVariable matches the names, in upper case, of variables with secret values: by their ending, or by a word
// anywhere in them (GITHUB_TOKEN_RO).
var secretVariable = shell.Pattern(`(PASS(WORD|WD|PHRASE)|SECRETS?|TOKENS?|APIKEY|API_KEYS?|SECRET_KEY_BASE|` +
	`(ACCESS|SECRET|PRIVATE|ENCRYPTION|SIGNING|MASTER|AUTH)_KEY|CREDENTIALS|_PAT|_PWD|DBPASS|_AUTH|_COOKIE)$|` +
	`(^|_)(TOKEN|PASS|PASSWD|PASSWORD|JWT|APIKEY|API_KEY|ACCESS_KEY|SECRET_KEY)(_|$)`)

// minWordBytes: a shorter value of lower-case letters is an ordinary word ("postgres",
// "changeme").
const minWordBytes = 16

// FromEnviron returns the secrets among the variables of an environment (NAME=value): those
// with telling names, and the passwords in URLs. It omits values that are not secrets: paths,
// plain words, anything shorter than MinKnownBytes.
func FromEnviron(environ []string) []Secret {
	var out []Secret
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		value = strings.TrimSpace(value)
		if s, ok := urlPassword(name, value); ok {
			out = append(out, s)
		}
		if SecretName(name) && secretValue(value) {
			out = append(out, Secret{Kind: kindName(name), Value: value})
		}
	}
	return out
}

// SecretName reports whether a variable's name marks its value as secret.
func SecretName(name string) bool { return secretVariable().MatchString(strings.ToUpper(name)) }

func secretValue(v string) bool {
	path := strings.HasPrefix(v, "/") || strings.HasPrefix(v, "~") || strings.HasPrefix(v, "./") ||
		strings.Contains(v, "://")
	word := len(v) < minWordBytes && strings.Trim(v, lowerLetters) == ""
	return len(v) >= MinKnownBytes && !path && !word
}

func urlPassword(name, value string) (Secret, bool) {
	u, err := url.Parse(value)
	if err != nil || !strings.Contains(value, "://") {
		return Secret{}, false
	}
	p, _ := u.User.Password()
	return Secret{Kind: kindName(name) + "-password", Value: p}, secretValue(p)
}

// withLines adds, for values of several lines, each line that is a secret on its own: a listing
// may number the lines and end them with CRLF.
func withLines(known []Secret) []Secret {
	out := slices.Clone(known)
	for _, s := range known {
		if !strings.Contains(s.Value, "\n") {
			continue
		}
		for line := range strings.SplitSeq(s.Value, "\n") {
			if line = strings.TrimSpace(line); secretValue(line) && !strings.HasPrefix(line, "-----") {
				out = append(out, Secret{Kind: s.Kind, Value: line})
			}
		}
	}
	return out
}

// jsonEscape returns a value as it appears between the quotes of a JSON string.
func jsonEscape(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // strings always encode
	return strings.TrimSuffix(strings.TrimSuffix(b.String(), "\n"), `"`)[1:]
}
