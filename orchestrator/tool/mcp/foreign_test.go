package mcp

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestMessages(t *testing.T) {
	const in = "Listening on stdio\n{\"a\":1}\n\r\n [1]\r\n{half\n{\"b\":2}"
	var stray []string
	out, err := io.ReadAll(
		newMessages(io.NopCloser(strings.NewReader(in)), func(line []byte) { stray = append(stray, string(line)) }))
	if err != nil || string(out) != "{\"a\":1}\n [1]\n{\"b\":2}\n" ||
		strings.Join(stray, "|") != "Listening on stdio||{half" {
		t.Errorf("%q, %v, others %q", out, err, stray)
	}
}

func TestMessageLimit(t *testing.T) {
	long := func() io.ReadCloser { return io.NopCloser(io.LimitReader(zeros{}, maxMessageBytes+10)) }
	if _, err := io.Copy(io.Discard, newMessages(long(), func([]byte) {})); !errors.Is(err, errMessageTooLong) {
		t.Errorf("a line: %v", err)
	}
	res, err := (&carrier{through: answers{long}}).RoundTrip(&http.Request{})
	if err != nil {
		t.Fatal(err)
	}
	var large *http.MaxBytesError
	if _, err := io.Copy(io.Discard, res.Body); !errors.As(err, &large) {
		t.Errorf("a body: %v", err)
	}
}

// answers is a server that answers each request with a body of JSON.
type answers struct{ body func() io.ReadCloser }

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}, Body: a.body()}, nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	if servers, err := Load(path, ""); err != nil || servers != nil {
		t.Fatalf("no file: %v, %v", servers, err)
	}
	if err := os.WriteFile(path, []byte(`{"other":{"x":1},"mcpServers":{"b":{"url":"http://h/mcp","later":true}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Put(path, Server{Name: "a", Command: "run", Args: []string{"-x"}}); err != nil {
		t.Fatal(err)
	}
	servers, err := Load(path, "")
	if err != nil || len(servers) != 2 || servers[0].Command != "run" || servers[1].URL != "http://h/mcp" {
		t.Fatalf("%+v, %v", servers, err)
	}
	data, _ := os.ReadFile(path)
	if s := string(data); !strings.Contains(s, `"other"`) || !strings.Contains(s, `"later"`) {
		t.Errorf("what is not ours is gone: %s", s)
	}
	if err := Remove(path, "a"); err != nil {
		t.Fatal(err)
	}
	if err := Remove(path, "a"); !errors.Is(err, ErrNoServer) {
		t.Errorf("removed twice: %v", err)
	}
}

// A project can put anything in the place of its file: none of it is waited for.
func TestConfigNoFile(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, dir, "/dev/zero"} {
		if _, err := Load(path, dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, name := range []string{"a__b", "a..b", "a_.b", "a_", "a.", "_a", "a b", ""} {
		if err := (Server{Name: name, Command: "x"}).Check(); err == nil ||
			!strings.Contains(err.Error(), "a name has") {
			t.Errorf("name %q: %v", name, err)
		}
	}
	for want, s := range map[string]Server{
		"":                    {Name: "o-k.2_x-", Type: "stdio", Command: "x"},
		"neither command nor": {Name: "a"},
		"both command and":    {Name: "a", Command: "x", URL: "http://x"},
		"want stdio with":     {Name: "a", Type: "sse", URL: "http://x"},
		"want http://":        {Name: "a", URL: "file:///etc/passwd"},
		"want 1 to":           {Name: "a", Command: "x", CallTimeoutSeconds: -1},
	} {
		err := s.Check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}

func TestExpand(t *testing.T) {
	getenv := func(name string) string { return map[string]string{"A": "1"}[name] }
	for in, want := range map[string]string{"x${A}y": "x1y", "${B:-two}": "two", "$A": "$A", "${A}${A}": "11"} {
		if got, err := expand(in, getenv); got != want || err != nil {
			t.Errorf("%s: %q, %v", in, got, err)
		}
	}
	if _, err := expand("${B}", getenv); err == nil {
		t.Error("a variable that is not set is no error")
	}
}

func TestRemoteName(t *testing.T) {
	taken := make(map[string]bool)
	long := strings.Repeat("tool", 20)
	for _, tc := range []struct{ server, name, want string }{
		{"s", "get-sum", "mcp__s__get-sum"},
		{"s.x", "a b/c", "mcp__s_x__a_b_c"},
		{"s_x", "a b/c", "mcp__s_x__a_b_c_"}, // the same again: told apart
		{"s", long, "mcp__s__tooltool"},
	} {
		got := remoteName(Server{Name: tc.server}, tc.name, taken)
		if !strings.HasPrefix(got, tc.want) || len(got) > 64 || taken[got] {
			t.Errorf("%s %s: %s", tc.server, tc.name, got)
		}
		taken[got] = true
	}
}

// TestTypes: a server's type agrees with what it is reached by; other programs call http streamable-http.
func TestTypes(t *testing.T) {
	for typ, fits := range map[string][2]bool{"": {true, true}, "stdio": {true, false}, "http": {false, true}, "streamable-http": {false, true}, "sse": {false, false}} {
		for i, s := range []Server{{Name: "a", Type: typ, Command: "x"}, {Name: "a", Type: typ, URL: "http://x"}} {
			if err := s.Check(); (err == nil) != fits[i] {
				t.Errorf("%+v: %v", s, err)
			}
		}
	}
}
