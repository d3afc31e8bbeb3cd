package redact

import (
	"net/url"
	"slices"
	"strings"
)

// FromSetting returns the secrets in the value of a setting that may hold one: a header, a
// variable of a program, an address. For "Bearer …" it returns the text after the scheme; for a
// URL its password, a token in place of the user, and the parts of its path and query that look
// random or have telling names. It omits what FromEnviron omits and, unless the setting has a
// telling name, values that look like names (acme-web, eu-west-1).
func FromSetting(name, value string) []Secret {
	value = strings.TrimSpace(value)
	if strings.Contains(value, "://") {
		return fromURL(name, value)
	}
	if words := strings.Fields(value); len(words) == 2 && isWord(words[0]) {
		value = words[1]
	}
	if !secretValue(value) || !secretSetting(name) && nameLooking(value) {
		return nil
	}
	return []Secret{{Kind: kindName(name), Value: value}}
}

// secretSetting reports whether a setting's name marks its value as secret.
func secretSetting(name string) bool {
	name = strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	return SecretName(name) || strings.HasSuffix(name, "KEY") || strings.HasSuffix(name, "AUTH") ||
		slices.Contains([]string{"AUTHORIZATION", "COOKIE", "SIG", "SIGNATURE"}, name)
}

// nameLooking reports whether a value consists of words and short numbers, joined as in a name.
func nameLooking(v string) bool {
	for part := range strings.FieldsFuncSeq(v, func(r rune) bool { return strings.ContainsRune("-_. /:", r) }) {
		if !isWord(part) && strings.Trim(part, "0123456789") != "" || len(part) >= minWordBytes {
			return false
		}
	}
	return true
}

func isWord(s string) bool {
	for i := range len(s) {
		if !isLower(s[i]) && !isUpper(s[i]) {
			return false
		}
	}
	return s != ""
}

func fromURL(name, value string) []Secret {
	u, err := url.Parse(value)
	if err != nil {
		return nil
	}
	var out []Secret
	add := func(what, v string) { out = append(out, Secret{Kind: kindName(name) + what, Value: v}) }
	if s, ok := urlPassword(name, value); ok {
		out = append(out, s)
	}
	if user := u.User.Username(); len(user) >= minUserTokenBytes && random(user) {
		add("-token", user)
	}
	for key, values := range u.Query() {
		for _, v := range values {
			if secretValue(v) && (secretSetting(key) || random(v) && !nameLooking(v)) {
				add("-"+kindName(key), v)
			}
		}
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if len(part) >= minPathPartBytes && random(part) && !nameLooking(part) {
			add("-path", part)
		}
	}
	return out
}
