package file_test

import (
	"strings"
	"testing"

	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
)

// TestSecretFile: which names are of secrets, whatever they are a copy of.
func TestSecretFile(t *testing.T) {
	for name := range strings.FieldsSeq(".env .ENV .env.local a/.envrc .env-prod .env~ .env.bak prod.env id_rsa id_rsa.bak id_ed25519.old~ server.key server.key.orig a.pem .ssh/config .aws/credentials .netrc") {
		if !tool.SecretFile(name, nil) {
			t.Errorf("%s is no file of secrets", name)
		}
		if tool.SecretFile(name, []string{"**"}) {
			t.Errorf("%s is not allowed by a pattern", name)
		}
	}
	for name := range strings.FieldsSeq(".env.example .env-sample .env.template.bak a.env.dist env.go environment.ts .ssh/id_rsa.pub .ssh/known_hosts key.go keys/a.txt") {
		if tool.SecretFile(name, nil) {
			t.Errorf("%s is a file of secrets", name)
		}
	}
}

// TestPatchTellsNoSecret: what ReadFile does not show, a patch that does not fit
// does not quote, and a new name does not open.
func TestPatchTellsNoSecret(t *testing.T) {
	w := plain(t)
	put(t, w, ".env", "PORT=80\nWORDS=blue horse\n")
	for _, patch := range []string{
		"*** Begin Patch\n*** Update File: .env\n PORT=80\n-x\n+y\n*** End Patch\n",
		"*** Begin Patch\n*** Update File: .env\n*** Move to: plain.txt\n*** End Patch\n",
	} {
		r := call(t, w, file.PatchFile(nil), map[string]any{"patch": patch})
		if !r.IsError || strings.Contains(r.Text, "blue") || !strings.Contains(r.Text, "allow-secrets") {
			t.Errorf("%q: %s", patch, r.Text)
		}
	}
	kept := "*** Begin Patch\n*** Update File: .env\n*** Move to: .env.old\n-PORT=80\n+PORT=81\n*** End Patch\n"
	if r := call(t, w, file.PatchFile(nil), map[string]any{"patch": kept}); !strings.Contains(r.Text, "moved .env to .env.old") {
		t.Errorf("%q: %s", kept, r.Text)
	}
	r := call(t, w, file.PatchFile([]string{".env*"}),
		map[string]any{"patch": "*** Begin Patch\n*** Update File: .env.old\n PORT=81\n-x\n+y\n*** End Patch"})
	if !strings.Contains(r.Text, "blue") {
		t.Errorf("an allowed file: %s", r.Text)
	}
}
