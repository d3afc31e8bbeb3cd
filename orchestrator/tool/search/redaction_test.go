package search_test

import (
	"fmt"
	"strings"
	"testing"

	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/tool/search"
)

// TestGrepCutsThroughSecrets puts secrets at every place around the end of what
// is shown of a line, and matches within a private key: nothing of either is
// left.
func TestGrepCutsThroughSecrets(t *testing.T) {
	known := "Kn0wQzPl4iVxW7jK"
	var key strings.Builder
	for i := range 8 {
		fmt.Fprintf(&key, "%sb3x9Z7Qw\n", strings.Repeat(string(rune('A'+i))+"q/4", 8))
	}
	for back := range len(known) + 2 {
		env := world(t,
			"long|first\n"+strings.Repeat(".", search.MaxLineRunes-back-1)+" "+known+" and more\n",
			"settings.yaml|a: b\n-----BEGIN PRIVATE KEY-----\n"+key.String()+"-----END PRIVATE KEY-----\n")
		env.Redactor = redact.New(nil, []redact.Secret{{Kind: "known", Value: known}})
		r := call(t, env, search.Grep(nil), map[string]any{"pattern": `Kn0w|\.\.\.|Dq/4`, "output_mode": "content"})
		for i := range len(known) - 3 {
			if part := known[i : i+4]; strings.Contains(r.Text, part) {
				t.Fatalf("%d bytes before the cut: %q is left in\n%s", back, part, r.Text)
			}
		}
		if strings.Contains(r.Text, "b3x9Z7Qw") || !strings.Contains(r.Text, "settings.yaml:6:[redacted:private-key:") {
			t.Fatalf("a line of a key:\n%s", r.Text)
		}
		if len(r.Secrets) != 9 {
			t.Fatalf("found %v", r.Secrets)
		}
	}
}
