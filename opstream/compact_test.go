package opstream

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// compactSeeds are bodies of every form that compactObject tells apart.
func compactSeeds() []string {
	return []string{
		`{}`, `{"a":1}`, `{"a":[]}`, `{"a":{}}`, `{"a":[{},[],"",0]}`, `{"a":[[1,2],[3]],"b":{"c":null}}`,
		`{"a":true,"b":false,"c":null}`, `{"":-0.5e+10}`, `{"a":1E-9}`, `{"a":0}`, `{"a":-0}`,
		`{"a":"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00"}`, `{"longer than eight bytes":"\u2028 ünïcödé ✓"}`,
		`{"a":"` + strings.Repeat("x", 100) + `\n"}`, "{\"a\":\"\xff\"}",
		strings.Repeat(`{"a":`, quickDepth-1) + `{}` + strings.Repeat(`}`, quickDepth-1),
		``, `{`, `}`, `[]`, `1`, `{}}`, `{}{}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1]`, `{"a":[1}`, `{"a":[,]}`,
		`{"a":[1,]}`, `{a:1}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":1e+}`, `{"a":+1}`,
		`{"a":tru}`, `{"a":truee}`, `{"a":nul`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"\u12`, `{"a":"\`, `{"a":"`, `{"a":"b`, "{\"a\":\"\n\"}",
		"{\"a\":\"1234567\x00\"}", `{"a":1,"b"`, `{"a":[`, `{"a":[1`, `{"a":1`, `{"a":[]`, ` {}`, `{} `, `{ }`, `{"a": 1}`, `{"a" :1}`, `{"a":[ ]}`, `{"a":[1 ]}`,
		strings.Repeat(`{"a":`, quickDepth) + `{}` + strings.Repeat(`}`, quickDepth),
	}
}

// TestCompactObject holds the quick check against encoding/json: what it takes
// is what json.Compact makes of it, and what it need not refuse it takes.
func TestCompactObject(t *testing.T) {
	for _, s := range compactSeeds() {
		checkCompact(t, []byte(s))
	}
}

func checkCompact(t *testing.T, body []byte) {
	t.Helper()
	var want bytes.Buffer
	err := json.Compact(&want, body)
	ours := err == nil && len(body) > 0 && body[0] == '{' && bytes.Equal(want.Bytes(), body)
	if got := compactObject(body); got != ours && (got || bytes.Count(body, []byte("{"))+bytes.Count(body, []byte("[")) <= quickDepth) {
		t.Errorf("compactObject(%q) = %v, encoding/json: %v, %v", body, got, ours, err)
	}
}

// FuzzCompactObject compares the two on any bytes.
func FuzzCompactObject(f *testing.F) {
	for _, s := range compactSeeds() {
		f.Add([]byte(s))
	}
	f.Fuzz(checkCompact)
}
