package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
)

// TestFormsOfKnown: what of a known value is found by itself, and how long it may be.
func TestFormsOfKnown(t *testing.T) {
	many := strings.Repeat
	for _, tt := range []struct {
		value, text string
		found       int
	}{
		{"Zq7Wx9Rt3Vb5Nm1K", "Zq7Wx9Rt\n3Vb5Nm1K", 2}, // wrapped
		{"Zq7Wx9Rt3Vb5Nm1", "Zq7Wx9R\nt3Vb5Nm1", 0},
		{"words and more 123", "words and mo\nre 123", 0},
		{"words\nand\tmore 12", "words\nand\tmore 12", 2},
		{"x-Zq7Wx9-Rt3Vb5Nm1K", "Zq7Wx9-Rt3Vb5Nm1K", 1}, // without its prefix
		{"abcdefghij-Zq7Wx9-Rt3Vb5Nm1K", "Zq7Wx9-Rt3Vb5Nm1K", 1},
		{"abcdefghijk-Zq7Wx9-Rt3Vb5Nm1K", "Zq7Wx9-Rt3Vb5Nm1K", 0},
		{"a1b2c3d4-Zq7Wx9-Rt3Vb5Nm1K", "Zq7Wx9-Rt3Vb5Nm1K", 0}, // that is random itself
		{"-Zq7Wx9-Rt3Vb5Nm1K", "Zq7Wx9-Rt3Vb5Nm1K", 0},
		{"AKIAABCDEFGHIJKL", "ABCDEFGHIJKL", 0},
		{"AKIAQ7Z3M9X2K5W8R4T6", "Q7Z3M9X2K5W8R4T6", 1},
		{"Zq7W1x9_Zq7Wx9Rt3Vb5Nm1K", "Zq7Wx9Rt3Vb5Nm1K", 1}, // its longest part
		{"Zq7W1x9_Zq7Wx9Rt3Vb5Nm1", "Zq7Wx9Rt3Vb5Nm1", 0},
		{"Zq7W1x9_abcdefghijklmnopq", "abcdefghijklmnopq", 0},
		{"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.Zq7Wx9Rt3Vb5Nm1K", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9 x", 0},
		{"q7>?>?>~~~?Zw9xK", base64.URLEncoding.EncodeToString([]byte("q7>?>?>~~~?Zw9xK")), 1},
		{"q7>?>?>~~~?Zw9xK", base64.StdEncoding.EncodeToString([]byte("ab q7>?>?>~~~?Zw9xK")), 1},
		{many("some words ", 372) + "1234", many("some words ", 372) + "1234", 1}, // 4096 bytes
		{many("some words ", 372) + "12345", many("some words ", 372) + "12345", 0},
	} {
		r := New(testKey(), []Secret{{"k", tt.value}})
		if out, found := r.Text(tt.text); len(found) != tt.found || tt.found == 0 && out != tt.text {
			t.Errorf("%.40q in %.40q: %.80q", tt.value, tt.text, out)
		}
	}
}

// TestLearnedLimits: a value is learned once, up to a length, and not if it was known.
func TestLearnedLimits(t *testing.T) {
	l := new(Learned)
	r := NewLearning(testKey(), []Secret{{"k", "sk-Zq7Wx9Rt3Vb5Nm1KZq7Wx9Rt3Vb5Nm1K"}}, l)
	r.Text("sk-Zq7Wx9Rt3Vb5Nm1KZq7Wx9Rt3Vb5Nm1K")
	if got := l.Values(0); len(got) != 0 {
		t.Errorf("learned what was known: %v", got)
	}
	l.Add(Secret{"a", "b"}, Secret{"c", "b"})
	key := "sk-" + strings.Repeat("Kx8Rt3Vq", 256)
	r.Text(key[:maxKnownBytes/2+1])
	r.Text(key[:maxKnownBytes/2])
	if got := l.Values(1); len(got) != 1 || len(got[0].Value) != maxKnownBytes/2 {
		t.Errorf("%d learned beside one", len(got))
	}
}

// TestLongest: the longest key, credential and token are found whole, and what is longer is none.
func TestLongest(t *testing.T) {
	long := strings.Repeat("Kx8Rt3Vq", maxSecretBytes/8)
	jwt := "eyJhbGciOiJ.eyJzdWIiOiJ."
	for _, tt := range []struct {
		before, secret string
		found          int
	}{
		{"Bearer ", long, 1}, {"Bearer ", long + "x", 0},
		{"", jwt + long[:maxSecretBytes-len(jwt)], 1}, {"", jwt + long[:maxSecretBytes-len(jwt)+1], 0},
		{"", "sk-" + long, 1}, {"", "sk-" + long + "x", 0},
	} {
		_, found := New(testKey(), nil).Text(tt.before + tt.secret)
		if len(found) != tt.found || tt.found > 0 && found[0].Bytes != tt.secret {
			t.Errorf("%s%.20s of %d bytes: found %d", tt.before, tt.secret, len(tt.secret), len(found))
		}
	}
	r := New(testKey(), []Secret{{"pin", "47110815"}})
	if out, _, err := r.JSON([]byte(`{"text":"47110815"}`), &JSONOptions{Nested: []string{"args"}}); err != nil ||
		strings.Contains(string(out), `\`) {
		t.Errorf("a text that is a number: %s, %v", out, err)
	}
}

// TestNothingSearched: JSON without a text to search is as it was, also for who learns.
func TestNothingSearched(t *testing.T) {
	for _, in := range []string{`{}`, `[1,true]`, `{"id":"x"}`} {
		r := NewLearning(testKey(), nil, new(Learned))
		out, changed, err := r.JSON([]byte(in), &JSONOptions{OwnKeys: true, Keep: []string{"id"}})
		if err != nil || changed || string(out) != in {
			t.Errorf("%s became %s, %v", in, out, err)
		}
	}
}

// TestJSONForeign: in another program's part, signatures are searched for known values only, and no key is kept.
func TestJSONForeign(t *testing.T) {
	key := secrets()["github-token"]
	o := &JSONOptions{Foreign: "extra", Keep: []string{"id"}, Nested: []string{"args"}}
	for _, tt := range []struct {
		in    string
		found int
	}{
		{`{"extra":{"signature":"` + key + `"}}`, 0}, {`{"extra":{"x":{"Encrypted_Content":"` + key + `"}}}`, 0}, {`{"extra":{"data":"` + key + `"}}`, 0},
		{`{"extra":{"text":"` + key + `"}}`, 1}, {`{"extra":{"id":"` + key + `"}}`, 1}, {`{"signature":"` + key + `"}`, 1}, {`{"id":"` + key + `"}`, 0},
		{`{"extra":{},"id":"` + key + `"}`, 0}, {`{"":{"id":"` + key + `"}}`, 0}, {`{"extra":{"signature":"a known value 42"}}`, 1},
		{`{"pin":47110815,"x":4711081}`, 1}, {`{"x":"DB_PASSWORD","value":"Argument7Zz9Qq"}`, 0}, {`{"name":"DB_PASSWORD","mode":"Argument7Zz9Qq"}`, 0},
		{`{"args":"{\"id\":\"` + key + `\"}"}`, 1}, {`{"args":"x ` + key + `"}`, 1}, {`{"text":"{\"x\":\"` + key + `\"}"}`, 1},
		{`{"DB_PASSWORD123":"hunter"}`, 1}, {`{"DB_PASSWORD1234":"hunter"}`, 0},
	} {
		r := New(testKey(), []Secret{{"known", "known value 42"}, {"pin", "47110815"}, {"short", "4711081"}})
		out, changed, err := r.JSON([]byte(tt.in), o)
		if err != nil || strings.Count(string(out), markerBegin) != tt.found || changed != (tt.found > 0) {
			t.Errorf("%s: %s, %v", tt.in, out, err)
		}
	}
}

// TestWrappedAnywhere: a value is found whichever of its characters a line ends behind, and in base64, too.
func TestWrappedAnywhere(t *testing.T) {
	const value = "Zq7Wx9Rt3Vb5Nm1KPd2Lc"
	r := New(testKey(), []Secret{{"k", value}})
	for _, text := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)), base64.StdEncoding.EncodeToString([]byte("a" + value + "bc")),
		base64.URLEncoding.EncodeToString([]byte("ab" + value)),
		base64.RawStdEncoding.EncodeToString([]byte("?>" + value + "?>?"))} {
		for _, end := range []string{"\n", "\r\n", "\\\n", "=\r\n  ", "\n\t"} {
			for cut := 1; cut < len(text); cut++ {
				in := "<" + text[:cut] + end + text[cut:] + ">"
				out, found := r.Text(in)
				rest := strings.Trim(ReplaceMarkers(out, func(string) string { return "" }), "<>")
				if len(found) == 0 || inOrder(out, found) != in || len(rest)-len(end) > 8 ||
					text == value && strings.Trim(rest, "\\=\r\n\t ") != "" {
					t.Errorf("%q: %q", in, out)
				}
			}
		}
	}
}

// TestAdjacent: secrets side by side keep a marker each.
func TestAdjacent(t *testing.T) {
	r := New(testKey(), []Secret{{"a", "aaaa-1111"}, {"b", "bbbb-2222"}})
	if out, found := r.Text("bbbb-2222aaaa-1111"); len(found) != 2 {
		t.Errorf("%q", out)
	}
}

// TestKeyLines: lines of private keys as they come: of letters alone, escaped, cut, in base64 of any width.
func TestKeyLines(t *testing.T) {
	const begin, end = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
	key := begin + "\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n",
		4) + end + "\n"
	encoded := base64.StdEncoding.EncodeToString([]byte(key))
	wrap56 := regexp.MustCompile(".{56}").ReplaceAllString(encoded, "$0\n")
	wrap55 := regexp.MustCompile(".{55}").ReplaceAllString(encoded, "$0\n")
	line := "Anb3rx9ZAb3nx+9ZAb3/x+9Z"
	for _, tt := range []struct {
		name, in string
		found    int
	}{
		{"letters", begin + "\nabcdefghijABCDEFGHIJklmnop\n" + end, 1},
		{"a header", begin + "\nComment: abcdefghijABCDEFGHIJklmnop\n\n" + line + "\n" + end, 1},
		{"escaped", begin + `\n` + line + `\nr` + line + `\r\nn` + line + `\n` + end, 3},
		{"escaped, cut", begin + `\n` + line + `\`, 1},
		{"escaped twice", begin + `\n\n` + line + `\n\n` + line + `\n` + end, 2},
		{"short", begin + "\nabc\n" + end, 1},
		{"short words", begin + "\nabc def\n" + end, 1},
		{"short words on one line", begin + " abc " + end, 0},
		{"a line of 20 bytes", begin + "\nAnb3rx9ZAb3nx+9ZAb3/\n" + line + "\n" + end, 2},
		{"a line of 19 bytes", begin + "\nAnb3rx9ZAb3nx+9ZAb3\nwords\n", 0},
		{"20 bytes on one line", begin + " Anb3rx9ZAb3nx+9ZAb3/ " + end, 1},
		{"19 bytes on one line", begin + " Anb3rx9ZAb3nx+9ZAb3 " + end, 0},
		{"base64", encoded, 1},
		{"base64 of 56 columns", wrap56, len(strings.Split(strings.TrimSpace(wrap56), "\n"))},
		{"base64 of 55 columns", wrap55, 1},
		{"base64, and a blank line", encoded[:112] + "\n\nsome words", 1},
		{"base64 within a word", "x" + encoded, 0},
		{"base64 in lower case", strings.ToLower(encoded), 0},
	} {
		out, found := New(testKey(), nil).Text(tt.in)
		rest := ReplaceMarkers(out, func(string) string { return "" })
		if len(found) != tt.found || inOrder(out, found) != tt.in || len(found) > 0 && strings.Contains(rest, "An") {
			t.Errorf("%s: found %d in %q", tt.name, len(found), out)
		}
	}
}
