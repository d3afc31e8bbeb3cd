package mcp

import (
	"anamnesis/orchestrator/redact"
)

// Secrets returns the secret values that reach a server: those of its variables and headers,
// those in its address, and those of the variables of getenv that it names. It omits values
// that do not look secret; see redact.FromSetting. An unset variable has none.
func (s Server) Secrets(getenv func(string) string) []redact.Secret {
	var out []redact.Secret
	take := func(name, text string) {
		for _, m := range variable.FindAllStringSubmatch(text, -1) {
			out = append(out, redact.FromSetting(m[1], getenv(m[1]))...)
		}
		if value, err := expand(text, getenv); err == nil {
			out = append(out, redact.FromSetting(name, value)...)
		}
	}
	for name, text := range s.Env {
		take(name, text)
	}
	for name, text := range s.Headers {
		take(name, text)
	}
	for _, text := range s.Args {
		take("mcp-argument", text)
	}
	take("mcp-url", s.URL)
	return append(out, s.Grants.Secrets(getenv)...)
}
