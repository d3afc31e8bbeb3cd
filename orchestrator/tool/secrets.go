package tool

import (
	"path"
	"strings"

	"anamnesis/anamnesis/shell"
	"github.com/bmatcuk/doublestar/v4"
)

// The names of files that hold secrets, in lower case. Samples such as .env.example do
// not.
const (
	secretFiles = ".netrc _netrc .pgpass .git-credentials .npmrc .pypirc .htpasswd .vault-token credentials.json " +
		"service-account.json id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk"
	secretExts = ".pem .key .p12 .pfx .jks .keystore .kdbx .ppk .asc"
	secretDirs = ".ssh .gnupg .aws"
	sampleExts = ".example .sample .template .dist .defaults"
	copyExts   = ".bak .old .orig .save .swp .backup .copy"
)

// SecretFile reports whether a path looks like a file of secrets: .env files, keys, stored
// passwords, and copies of them, by name alone. Paths that match one of the doublestar
// patterns in allow do not count.
func SecretFile(rel string, allow []string) bool {
	for _, pattern := range allow {
		if ok, err := doublestar.Match(pattern, rel); err == nil && ok {
			return false
		}
	}
	dir, base := path.Split(strings.ToLower(rel))
	base = strings.TrimRight(base, "~")
	for shell.InList(copyExts, path.Ext(base)) {
		base = strings.TrimSuffix(base, path.Ext(base))
	}
	ext := path.Ext(base)
	if strings.HasPrefix(base, ".env") || strings.HasSuffix(base, ".env") {
		return !shell.InList(sampleExts, path.Ext(strings.NewReplacer("-", ".", "_", ".").Replace(base)))
	}
	if shell.InList(secretFiles, base) || shell.InList(secretExts, ext) {
		return true
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		if shell.InList(secretDirs, part) {
			return ext != ".pub" && base != "known_hosts"
		}
	}
	return false
}

// SecretRefusal is the model's result for such a file.
const SecretRefusal = "looks like a file of secrets and is not shown; if the task needs it, a user can allow it " +
	"(setting allow-secrets)"
