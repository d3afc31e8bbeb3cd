package redact

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// What a variable's name must end with to say that its value is secret.
const secretEndings = "PASSWORD PASSWD PASSPHRASE SECRET SECRETS TOKEN TOKENS API_KEY APIKEY API_KEYS ACCESS_KEY SECRET_KEY " +
	"PRIVATE_KEY ENCRYPTION_KEY SIGNING_KEY MASTER_KEY AUTH_KEY CREDENTIALS _PAT _PWD _PASS _AUTH _COOKIE"

// minWordBytes: a value of lower-case letters alone that is shorter is a word
// ("postgres", "changeme"), and words stand in every text.
const minWordBytes = 16

// FromEnviron gives the secrets among the variables of an environment
// (NAME=value): those whose names say so, and the passwords in URLs. Values
// that are no secrets are left out: paths, plain words, anything shorter than
// MinKnownBytes.
func FromEnviron(environ []string) []Secret {
	var out []Secret
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		value = strings.TrimSpace(value)
		if s, ok := urlPassword(name, value); ok {
			out = append(out, s)
			continue
		}
		if SecretName(name) && secretValue(value) {
			out = append(out, Secret{Kind: kindName(name), Value: value})
		}
	}
	return out
}

// SecretName reports whether a variable's name says that its value is secret.
func SecretName(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc(strings.Fields(secretEndings), func(e string) bool {
		return strings.HasSuffix(name, e)
	})
}

func secretValue(v string) bool {
	switch {
	case len(v) < MinKnownBytes, strings.HasPrefix(v, "/"), strings.HasPrefix(v, "~"), strings.HasPrefix(v, "./"), strings.Contains(v, "://"):
		return false
	case len(v) < minWordBytes && strings.Trim(v, "abcdefghijklmnopqrstuvwxyz") == "":
		return false
	}
	return true
}

func urlPassword(name, value string) (Secret, bool) {
	if !strings.Contains(value, "://") {
		return Secret{}, false
	}
	u, err := url.Parse(value)
	if err != nil || u.User == nil {
		return Secret{}, false
	}
	p, ok := u.User.Password()
	if !ok || !secretValue(p) {
		return Secret{}, false
	}
	return Secret{Kind: kindName(name) + "-password", Value: p}, true
}

// formsOf gives the ways a value may stand in a text: as it is, escaped in
// JSON, in JSON within JSON, and in a URL.
func formsOf(value string) []string {
	forms := []string{value}
	add := func(f string) {
		if !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
	}
	for _, html := range []bool{false, true} {
		once := jsonEscape(value, html)
		add(once)
		add(jsonEscape(once, html))
		add(strings.ReplaceAll(once, "/", `\/`))
	}
	add(url.QueryEscape(value))
	add(url.PathEscape(value))
	return forms
}

// jsonEscape gives a value as it stands between the quotes of a JSON string.
func jsonEscape(s string, html bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if enc.Encode(s) != nil { // strings always encode
		return s
	}
	return strings.TrimSuffix(strings.TrimSuffix(b.String(), "\n"), `"`)[1:]
}
