package redact

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestUnquote compares unquote with encoding/json.
func TestUnquote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(),
			rapid.StringOf(rapid.RuneFrom([]rune("\"\\/\n\t\r\b\f\x00\x1f\u2028\U0001F600<&é")))).Draw(t, "text")
		data, err := json.Marshal(s)
		got, at := unquote(string(data))
		if err != nil || got != strings.ToValidUTF8(s, "\uFFFD") || at != nil && len(at) != len(got)+1 {
			t.Fatalf("unquoted %s: %q, %v", data, got, at)
		}
	})
	for in, want := range map[string]string{`"\ud83d\ude00"`: "\U0001F600", `"\ud83dx"`: "\uFFFDx", `"\ud83d\u0041"`: "\uFFFDA", `"\/\u00e9"`: "/é"} {
		if got, _ := unquote(in); got != want {
			t.Errorf("unquote %s: %q, want %q", in, got, want)
		}
	}
}
