package redact

import (
	"slices"
	"strings"
	"testing"
)

func TestFromSetting(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"ACME_LOGIN", "hunter2hunter2", "hunter2hunter2"},
		{"ACME_LOGIN", "q0w9e8r7-plain", "q0w9e8r7-plain"},
		{"API_KEY", "correct-horse-battery", "correct-horse-battery"},
		{"Authorization", "Bearer AbCdEfGhIjKlMnOp", "AbCdEfGhIjKlMnOp"},
		{"Authorization", "Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"},
		{"X-Api-Key", "some-words-only", "some-words-only"},
		{"url", "https://u:hunter2x9@h/mcp", "hunter2x9"},
		{"url", "https://glQ7xT2mVb9KpLw4Zr8N@h/mcp", "glQ7xT2mVb9KpLw4Zr8N"},
		{"url", "https://h/mcp?key=only-words-here&mode=read-only-1", "only-words-here"},
		{"url", "https://h/s/Zy9xWv6uTs3rQp0oNm7l/mcp", "Zy9xWv6uTs3rQp0oNm7l"},
		{"url", "https://h/?user=roo&password=hunter22", "hunter22"},
		{"url", "https://h/?a=Kx8Rt3Vq0Z", "Kx8Rt3Vq0Z"},
		{"url", "https://h/Kx8Rt3Vq0ZmL7nWb/x", "Kx8Rt3Vq0ZmL7nWb"},
		{"PROJECT", "acme-abcdefghijklmnop", "acme-abcdefghijklmnop"},
		{"PROJECT", "acme-abcdefghijklmno", ""},
		{"url", "https://h/?zone=eu-West-12", ""},
		{"url", "https://h/?q=a.b,c*d!ef", ""},
		{"url", "https://h/Kx8Rt3Vq0ZmL7nW/x", ""},
		{"url", "https://h/eu-West-12-zone-b/x", ""},
		{"url", "https://h/abcdefghijklmnopqrst/x", ""},
		{"REGION", "eu-west-1", ""},
		{"PROJECT", "acme-web", ""},
		{"MODEL", "gpt-5-mini-2025", ""},
		{"ROOT", "/srv/Data2025/x1y2z3", ""},
		{"API_KEY", "short", ""},
		{"Accept", "application/json", ""},
		{"url", "https://h:8080/v1/mcp?page=12345678", ""},
	} {
		var got []string
		for _, s := range FromSetting(c.name, c.value) {
			got = append(got, s.Value)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("FromSetting(%s, %s) = %q, want %q", c.name, c.value, got, c.want)
		}
	}
	if got := FromSetting("url", "https://u:hunter2x9@h/?api_key=abcdefgh1"); len(got) != 2 || !slices.ContainsFunc(got, func(s Secret) bool { return s.Kind == "url-api-key" }) {
		t.Errorf("%v", got)
	}
}
