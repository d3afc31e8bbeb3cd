package file_test

import (
	"fmt"
	"strings"
	"testing"

	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/tool/file"
)

// TestReadFileCutsThroughSecrets puts secrets at every place around the end of
// what is shown of a line: nothing of one is left.
func TestReadFileCutsThroughSecrets(t *testing.T) {
	env := plain(t)
	known := "Kn0wQzPl4iVxW7jK"
	env.Redactor = redact.New(nil, []redact.Secret{{Kind: "known", Value: known}})
	for _, in := range []string{known, "DB_PASSWORD=" + known[1:]} {
		for back := range len(in) + 2 {
			put(t, env, "long", "first\n"+strings.Repeat(".", file.MaxLineRunes-back-1)+" "+in+" and more\nlast\n")
			r := call(t, env, file.ReadFile(nil), map[string]any{"path": "long"})
			for i := range len(known) - 3 {
				if part := known[i : i+4]; strings.Contains(r.Text, part) {
					t.Fatalf("%q, %d bytes before the cut: %q is left", in, back, part)
				}
			}
			if len(r.Secrets) != 1 || !strings.Contains(in, r.Secrets[0].Bytes) ||
				!strings.Contains(r.Text, "     3\tlast\n") {
				t.Fatalf("%q, %d bytes before the cut: found %v", in, back, r.Secrets)
			}
		}
	}
}

// TestReadFileWithinAKey shows a part of a file that begins within a private
// key: its lines are the key's, with the numbers they have.
func TestReadFileWithinAKey(t *testing.T) {
	env := plain(t)
	env.Redactor = redact.New(nil, nil)
	var text strings.Builder
	text.WriteString("name: x\nkey: |\n  -----BEGIN PRIVATE KEY-----\n")
	for i := range 8 {
		fmt.Fprintf(&text, "  %sb3x9Z7Qw\n", strings.Repeat(string(rune('A'+i))+"q/4", 8))
	}
	text.WriteString("  -----END PRIVATE KEY-----\nend: y\n")
	put(t, env, "settings.yaml", text.String())
	for first := 4; first <= 12; first++ {
		r := call(t, env, file.ReadFile(nil), map[string]any{"path": "settings.yaml", "line_offset": first})
		if strings.Contains(r.Text, "b3x9Z7Qw") || !strings.Contains(r.Text, "    13\tend: y\n") {
			t.Errorf("from line %d:\n%s", first, r.Text)
		}
	}
}
