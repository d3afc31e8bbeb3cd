package tool_test

import (
	"strings"
	"testing"

	"anamnesis/orchestrator/tool"
)

// TestSecretFile judges files by their names: those of secrets and copies of them, but neither
// samples nor public keys.
func TestSecretFile(t *testing.T) {
	secret := ".env .env.local a/prod.env .ENV .env~ .env.bak .env.old.orig .netrc a/.npmrc.bak id_rsa a/id_ed25519 server.pem a.KEY " +
		"keys.kdbx~ .ssh/config a/.ssh/deep/x .aws/credentials .gnupg/ring"
	plain := "env environment.go .env.example .env-sample .env_template .env.sample.bak a.environment netrc id_rsa.pub key pem a.keys " +
		".ssh .ssh/id.pub .ssh/known_hosts .ssh/known_hosts.old ssh/config a.ssh/x main.go"
	for name := range strings.FieldsSeq(secret) {
		if !tool.SecretFile(name, nil) {
			t.Errorf("%s counts as plain", name)
		}
		if tool.SecretFile(name, []string{"[", "**"}) {
			t.Errorf("%s is not allowed", name)
		}
	}
	for name := range strings.FieldsSeq(plain) {
		if tool.SecretFile(name, nil) {
			t.Errorf("%s counts as a secret", name)
		}
	}
	if !tool.SecretFile("a/.env", []string{".env", "b/**"}) || tool.SecretFile("a/.env", []string{"b/**", "a/*"}) {
		t.Error("the patterns of other paths count")
	}
}
