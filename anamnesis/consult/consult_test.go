package consult

import (
	"strings"
	"testing"
)

// TestFill: names in braces become their values, whose own braces stay, and unknown names stay.
func TestFill(t *testing.T) {
	for want, got := range map[string]string{
		"a x b y":   Fill(" a {{one}} b {{two}}\n", "one", "x", "two", "y"),
		"{{two}} y": Fill("{{one}} {{two}}", "one", "{{two}}", "two", "y"),
		"{{one}}":   Fill("{{one}}"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestObject: of a reply the first object counts, whatever stands around it, up to a limit that is named.
func TestObject(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1}`:                           "",
		"so: {\"a\":1} }":                   "",
		"no object":                         "the reply holds no JSON object",
		`so: {"a"`:                          "the reply is not the JSON object asked for",
		`{"a":"x"}`:                         "the reply is not the JSON object asked for",
		`{"a":1}` + strings.Repeat(" ", 13): "",
		`{"a":1}` + strings.Repeat(" ", 14): "the reply has 21 bytes, at most 20 are read",
	} {
		var v struct{ A int }
		err := Object(text, 20, &v)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) || err == nil &&
			v.A != 1 {
			t.Errorf("%s: %d, %v", text, v.A, err)
		}
	}
}
