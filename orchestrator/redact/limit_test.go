package redact

import (
	"strings"
	"testing"
)

// TestURLLimits: the parts of a URL before its password, and the password, are looked for up to a length.
func TestURLLimits(t *testing.T) {
	r := New(testKey(), nil)
	password := func(n int) string { return strings.Repeat("q7", n/2) + strings.Repeat("w", n%2) }
	for text, want := range map[string]bool{
		"ss://u:" + password(512) + "@h": true, "ss://u:" + password(513) + "@h": false,
		"s://u:" + password(8) + "@h": false, strings.Repeat("s", 24) + "://u:" + password(8) + "@h": true, strings.Repeat("s", 25) + "://u:" + password(8) + "@h": false,
		"ss://" + strings.Repeat("u-", 128) + ":" + password(8) + "@h": true, "ss://" + strings.Repeat("u-", 128) + "u:" + password(8) + "@h": false,
		"ss://" + strings.Repeat("u-", 127) + "u:" + password(512) + "@h": true,
	} {
		if got, _ := r.Text(text); (got != text) != want {
			t.Errorf("%d bytes, %.40s: redacted as %.60s", len(text), text, got)
		}
	}
}

// TestEscapedValue: a value follows its name also where the end of the line between them is escaped.
func TestEscapedValue(t *testing.T) {
	r := New(testKey(), nil)
	for _, between := range []string{`,\n`, `,\r\n`, `, `, ",\n"} {
		text := `{\"name\": \"DB_PASSWORD\"` + between + `\"value\": \"q7Zw2Xc9Vb4Nm\"}`
		if got, _ := r.Text(text); strings.Contains(got, "q7Zw2Xc9Vb4Nm") {
			t.Errorf("between %q: %s", between, got)
		}
	}
}
