package named

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/model/modeltest"
)

// TestTuning: a model is asked as the user's file says, and its key is asked again when it is refused.
func TestTuning(t *testing.T) {
	var bodies, keys, headers []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		bodies, keys, headers = append(bodies, string(body)), append(keys,
			r.Header.Get("Authorization")), append(headers, r.Header.Get("X-Team"))
		if r.Header.Get("Authorization") == "Bearer key-1" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"message":"the token has expired"}}`)
			return
		}
		fmt.Fprint(w, `{"choices":[{"index":0,"message":{"content":"Yes."},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	count := filepath.Join(dir, "count")
	text := `models:
  - match: "team/*"
    headers: {X-Team: blue}
    key_command: echo x >> ` + count + `; printf 'key-%d\n' $(wc -l < ` + count + `)
    extra_body: {temperature: 0.2}
    first_byte_timeout: 10m
    fallback: [small]
  - match: "*"
    reasoning_effort: high
    extra_body: {temperature: 1, top_p: 0.5}
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(t.Context(), "team/large",
		&Options{BaseURL: server.URL + "/v1", Config: config, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := m.Ask(t.Context(), model.Request{Messages: modeltest.Question().Messages, Once: true}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(keys, ","); got != "Bearer key-1,Bearer key-2,Bearer key-2" {
		t.Errorf("keys sent: %s", got)
	}
	for i, body := range bodies {
		if headers[i] != "blue" || !strings.Contains(body, `"temperature":0.2`) ||
			!strings.Contains(body, `"top_p":0.5`) || !strings.Contains(body, `"reasoning_effort":"high"`) {
			t.Errorf("request %d: X-Team %q, %s", i, headers[i], body)
		}
	}
	if len(m.Fallback) != 1 || m.Fallback[0] != "small" {
		t.Errorf("fallback %q", m.Fallback)
	}
	other, err := Open(t.Context(), "other",
		&Options{BaseURL: server.URL + "/v1", Config: config, Getenv: func(string) string { return "" }})
	if err != nil || other.Fallback != nil {
		t.Errorf("another model: %v, %v", other, err)
	}
}

// TestTuningOfFound: rows apply to a model that was found and not named. The server that was found gets no key.
func TestTuningOfFound(t *testing.T) {
	var body, key string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/tags" {
			fmt.Fprint(w, `{"models":[{"name":"local:8b"},{"name":"other"}]}`)
			return
		}
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		body, key = string(data), r.Header.Get("Authorization")
		fmt.Fprint(w, `{"choices":[{"index":0,"message":{"content":"Yes."},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	config := filepath.Join(t.TempDir(), "config.yaml")
	rows := "models: [{match: 'local*', extra_body: {temperature: 0.2}, key_command: echo secret}]\n"
	if err := os.WriteFile(config, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(t.Context(), "", &Options{Config: config, Getenv: func(name string) string {
		return map[string]string{"OLLAMA_HOST": server.URL}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Ask(t.Context(), modeltest.Question(), nil); err != nil {
		t.Fatal(err)
	}
	if m.Name != "local:8b" || !strings.Contains(body, `"temperature":0.2`) || strings.Contains(key, "secret") {
		t.Errorf("%s was asked with key %q: %s", m.Name, key, body)
	}
}

// TestTuningErrors: a wrong row is one line that names it.
func TestTuningErrors(t *testing.T) {
	for name, tt := range map[string]struct{ rows, says string }{
		"no list":        {"{match: x}", "want a list"},
		"no match":       {"[{reasoning_effort: high}]", "match is missing"},
		"unknown":        {"[{match: x, efort: high}]", "efort"},
		"own field":      {"[{match: x, extra_body: {messages: []}}]", "sets messages"},
		"broken header":  {"[{match: x, headers: {\"a b\": c}}]", "cannot be sent"},
		"timeout":        {"[{match: x, first_byte_timeout: -1s}]", "below zero"},
		"no key":         {"[{match: x, key_command: 'true'}]", "printed no key"},
		"failing key":    {"[{match: x, key_command: 'echo secret; exit 3'}]", "exit status 3"},
		"not a duration": {"[{match: x, first_byte_timeout: soon}]", "row 1 (line 1)"},
	} {
		config := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(config, []byte("models: "+tt.rows+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Open(t.Context(), "x", &Options{BaseURL: "http://127.0.0.1:1/v1", Config: config, Getenv: func(string) string { return "" }})
		if err == nil {
			_, err = m.Ask(t.Context(), model.Request{Messages: modeltest.Question().Messages, Once: true}, nil)
		}
		if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "\n") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; want %q", name, err, tt.says)
		}
	}
}
