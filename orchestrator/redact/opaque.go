package redact

import "strings"

// Opaque reports whether a field that a model's provider put beside its reply is, by its name, a
// signature or encrypted: bytes that nobody reads, and that have to go back unchanged. Patterns of secrets
// match such bytes by chance.
func Opaque(name string) bool {
	name = strings.ToLower(name)
	return name == "data" || strings.Contains(name, "signature") || strings.Contains(name, "encrypted")
}
