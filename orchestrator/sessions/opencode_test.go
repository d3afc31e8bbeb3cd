package sessions

import "testing"

// TestUnquoted: the quotes of 'opencode run' go, and a prompt that quotes keeps its own.
func TestUnquoted(t *testing.T) {
	for text, want := range map[string]string{`"Make it pass"`: "Make it pass", `"a" and "b"`: `"a" and "b"`, `"`: `"`, `""`: "", "plain": "plain", `say "x"`: `say "x"`} {
		if got := unquoted(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
