package jsontext

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// seeds are texts of every form that check tells apart.
func seeds() []string {
	return []string{
		`{}`, `{"a":1}`, `{"a":[]}`, `{"a":{}}`, `{"a":[{},[],"",0]}`, `{"a":[[1,2],[3]],"b":{"c":null}}`,
		`{"a":true,"b":false,"c":null}`, `{"":-0.5e+10}`, `{"a":1E-9}`, `{"a":0}`, `{"a":-0}`,
		`{"a":"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00"}`, `{"longer than eight bytes":"\u2028 ünïcödé ✓"}`,
		`{"a":"` + strings.Repeat("x", 100) + `\n"}`, "{\"a\":\"\xff\"}",
		strings.Repeat(`{"a":`, quickDepth-1) + `{}` + strings.Repeat(`}`, quickDepth-1),
		`[]`, `1`, `"a"`, ` {}`, "{} \r\n\t", `{ }`, `{"a": 1}`, `{"a" :1}`, `{ "a":1 , "b" : [ ] }`, `{"a":[1 ]}`, " ", `1 2`, "{\v}",
		``, `{`, `}`, `{}}`, `{}{}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1]`, `{"a":[1}`, `{"a":[,]}`,
		`{"a":[1,]}`, `{a:1}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":1e+}`, `{"a":+1}`,
		`{"a":tru}`, `{"a":truee}`, `{"a":nul`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"\u12`, `{"a":"\`, `{"a":"`, `{"a":"b`, "{\"a\":\"\n\"}",
		"{\"a\":\"1234567\x00\"}", `{"a":1,"b"`, `{"a":[`, `{"a":[1`, `{"a":1`, `{"a":[]`,
		strings.Repeat(`{"a":`, quickDepth) + `{}` + strings.Repeat(`}`, quickDepth),
	}
}

// TestCheck holds the quick check against encoding/json: what it takes is what
// json.Valid takes and json.Compact leaves, and it refuses no flat text that
// those do not.
func TestCheck(t *testing.T) {
	for _, s := range seeds() {
		compare(t, []byte(s))
	}
}

func compare(t *testing.T, text []byte) {
	t.Helper()
	valid, compact := check(text)
	deep := bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) > quickDepth
	if want := json.Valid(text); Valid(text) != want || (valid != want && (valid || !deep)) {
		t.Errorf("%q is valid: %v, quickly %v; want %v", text, Valid(text), valid, want)
	}
	if !valid {
		return
	}
	var want bytes.Buffer
	if err := json.Compact(&want, text); err != nil || compact != bytes.Equal(want.Bytes(), text) {
		t.Errorf("%q is compact: %v; json.Compact: %s, %v", text, compact, want.Bytes(), err)
	}
	if CompactObject(text) != (compact && text[0] == '{') {
		t.Errorf("CompactObject(%q) = %v", text, CompactObject(text))
	}
}

// FuzzCheck compares the two on any bytes.
func FuzzCheck(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s))
	}
	f.Fuzz(compare)
}

// BenchmarkValid is beside json.Valid.
func BenchmarkValid(b *testing.B) {
	text := []byte(`{"a":[` + strings.Repeat(`{"text":"some words of a line\n","n":12345},`, 25_000) + `{}]}`)
	for name, valid := range map[string]func([]byte) bool{"ours": Valid, "encoding/json": json.Valid} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if !valid(text) {
					b.Fatal("not valid")
				}
			}
		})
	}
}

// TestUnquote compares Unquote with encoding/json.
func TestUnquote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("\"\\/\n\t\r\b\f\x00\x1f\u2028\U0001F600<&é")))).Draw(t, "text")
		data, err := json.Marshal(s)
		if err != nil || Unquote(string(data)) != strings.ToValidUTF8(s, "\uFFFD") {
			t.Fatalf("unquoted %s: %q", data, Unquote(string(data)))
		}
	})
	for in, want := range map[string]string{`"\ud83d\ude00"`: "\U0001F600", `"\ud83dx"`: "\uFFFDx", `"\ud83d\u0041"`: "\uFFFDA", `"\/\u00e9"`: "/é"} {
		if got := Unquote(in); got != want {
			t.Errorf("unquote %s: %q, want %q", in, got, want)
		}
	}
}
