package redact

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// TestJSONKeepsEscapes escapes a text in every way JSON has: the secrets in it
// become markers, and nothing else changes, not even how it is escaped.
func TestJSONKeepsEscapes(t *testing.T) {
	r := New(testKey(), []Secret{{"known", "gehe\"im\té😀nis"}})
	secret := secrets()["github-token"]
	marked := regexp.MustCompile(`\[redacted:[a-z0-9-]+:[0-9a-f]+\]`)
	rapid.Check(t, func(t *rapid.T) {
		var text, raw strings.Builder
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{
			"a", " ", "\"", "\\", "\n", "é", "😀", "\u2028", "/", "x=1 ", secret, "gehe\"im\té😀nis", "redis://:hunt\u00e9r2@h ",
		}), 1, 12).Draw(t, "pieces")
		for _, piece := range pieces {
			for _, c := range piece {
				text.WriteRune(c)
				raw.WriteString(escaped(t, c))
			}
		}
		in := `{"k":"` + raw.String() + `","n":1}`
		out, changed, err := r.JSON([]byte(in), nil)
		if err != nil {
			t.Fatal(err)
		}
		want, found := r.Text(text.String())
		var got map[string]any
		if err := json.Unmarshal(out, &got); err != nil || got["k"] != want || changed != (len(found) > 0) {
			t.Fatalf("%s\nbecame %s, %v\nwhich reads %q, want %q", in, out, err, got["k"], want)
		}
		parts := marked.Split(string(out), -1)
		first, last := parts[0], parts[len(parts)-1]
		if !strings.HasPrefix(in, first) || !strings.HasSuffix(in, last) {
			t.Fatalf("%s\nbecame %s\nother bytes changed", in, out)
		}
		rest := in
		for _, part := range parts {
			_, behind, ok := strings.Cut(rest, part)
			if !ok {
				t.Fatalf("%s\nbecame %s\n%q is not in it", in, out, part)
			}
			rest = behind
		}
	})
}

// TestJSONWithinARune takes a known value that begins within a character, which
// JSON may write as one escape.
func TestJSONWithinARune(t *testing.T) {
	r := New(testKey(), []Secret{{"known", "\x98\x80 is secret"}})
	for _, in := range []string{`{"k":"a\ud83d\ude00 is secret!"}`, `{"k":"a😀 is secret!"}`} {
		out, changed, err := r.JSON([]byte(in), nil)
		if err != nil || !changed || !json.Valid(out) || strings.Contains(string(out), "is secret") ||
			!strings.HasSuffix(string(out), `]!"}`) {
			t.Errorf("%s became %s, %v", in, out, err)
		}
	}
}

// TestJSONUpToARune takes a known value that ends within a character that is one escape: all of it is replaced.
func TestJSONUpToARune(t *testing.T) {
	r := New(testKey(), []Secret{{"known", "is secret \xf0\x9f"}})
	for _, in := range []string{`{"k":"is secret \ud83d\ude00!"}`, `{"k":"is secret \ud83d\ude00"}`} {
		out, changed, err := r.JSON([]byte(in), nil)
		if err != nil || !changed || !json.Valid(out) || strings.Contains(string(out), "secret") ||
			!strings.HasSuffix(string(out), in[strings.LastIndexByte(in, '0')+1:]) {
			t.Errorf("%s became %s, %v", in, out, err)
		}
	}
}

// TestJSONKeys: a key may be a secret, and may say that its value is one. A
// caller's own keys are neither looked at nor changed.
func TestJSONKeys(t *testing.T) {
	r := New(testKey(), []Secret{{"known", "q0w9e8r7-plain"}})
	marker := regexp.MustCompile(`\[redacted:([a-z-]+):[0-9a-f]{6}\]`)
	for _, c := range []struct{ in, want string }{
		{`{"password":"Tr0ub4dor&3x"}`, `{"password":"<password>"}`},
		{`{"env":{"DB_PASSWORD2":"hunter"}}`, `{"env":{"DB_PASSWORD2":"<password>"}}`},
		{`{"apiKey":"abc\u0031\u00323def456"}`, `{"apiKey":"<api-key>"}`},
		{`{"api_key":["abc123def456"]}`, `{"api_key":["<api-key>"]}`},
		{`{"args":"{\"password\":\"Tr0ub4dor&3x\"}"}`, `{"args":"{\"password\":\"<password>\"}"}`},
		{`{"args":"{\"q0w9e8r7-plain\":1}"}`, `{"args":"{\"<known>\":1}"}`},
		{`{"token":"https://u:hunt3r@h/x"}`, `{"token":"https://u:<url-password>@h/x"}`},
		{`{"token":"the next word"}`, `{"token":"the next word"}`},
		{`{"token":"word"}`, `{"token":"word"}`},
		{`{"token":17,"password":""}`, `{"token":17,"password":""}`},
		{`{"password":"[redacted:password:0a1b2c]"}`, `{"password":"[redacted:password:0a1b2c]"}`},
		{`{"q0w9e8r7-plain":"x"}`, `{"<known>":"x"}`},
	} {
		out, _, err := r.JSON([]byte(c.in), &JSONOptions{Nested: []string{"args"}})
		got := string(out)
		if got != c.in {
			got = marker.ReplaceAllString(got, "<$1>")
		}
		if err != nil || got != c.want {
			t.Errorf("%s\nbecame %s, %v\nwant   %s", c.in, got, err, c.want)
		}
	}
	own := `{"q0w9e8r7-plain":"x"}`
	if out, changed, err := r.JSON([]byte(own), &JSONOptions{OwnKeys: true}); err != nil || changed ||
		string(out) != own {
		t.Errorf("%s became %s, %v, %v", own, out, changed, err)
	}
}

// escaped writes a rune in one of the ways JSON allows.
func escaped(t *rapid.T, c rune) string {
	short := map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\t': `\t`, '/': `\/`}[c]
	switch how := rapid.IntRange(0, 3).Draw(t, "how"); {
	case how == 0 && c > 0xffff:
		hi, lo := utf16.EncodeRune(c)
		return fmt.Sprintf(`\u%04x\u%04X`, hi, lo)
	case how == 0 || (short == "" && c < ' '):
		return fmt.Sprintf(`\u%04x`, c)
	case short != "" && (c != '/' || how == 1):
		return short
	}
	return string(c)
}

// TestJSONPairs: a name that is a value itself marks the value beside it.
func TestJSONPairs(t *testing.T) {
	for _, in := range []string{
		`{"env":[{"name":"DB_PASSWORD","value":"«Argument7Zz9Qq»"},{"name":"MODE","value":"Argument7Zz9Qq2"}]}`,
		`[{"Key":"api-key","Type":1,"Value":"«kx8rt3vq0z»"}]`,
		`{"name":"API_TOKEN","x":{"name":"y"},"value":"«a1\u0062c3d4e5»"}`,
		`{"name":"MODE","value":"Argument7Zz9Qq"}`, `[{"name":"DB_PASSWORD"},{"value":"Argument7Zz9Qq"}]`,
		`{"name":"DB_PASSWORD","value":{"value":"Argument7Zz9Qq"}}`,
	} {
		text := strings.NewReplacer("«", "", "»", "").Replace(in)
		before, rest, ok := strings.Cut(in, "«")
		_, after, _ := strings.Cut(rest, "»")
		out, changed, err := New(testKey(), nil).JSON([]byte(text), nil)
		if err != nil || changed != ok ||
			ok && (!strings.HasPrefix(string(out), before+"[redacted:") || !strings.HasSuffix(string(out), "]"+after)) {
			t.Errorf("%s: %s, %v", in, out, err)
		}
	}
}
