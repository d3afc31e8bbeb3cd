//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// startServe runs `anamnesis serve` over what is in home and returns the
// address it prints. The server is asked to end with the test, and must.
func startServe(t *testing.T, home string, args ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"serve", "--json"}, args...)...)
	cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "ANAMNESIS_HOME="+home, "HOME="+home)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Errorf("the server had ended: %v", err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve, told to end: %v", err)
		}
	})
	var said struct{ URL string }
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&said); err != nil || said.URL == "" {
		t.Fatalf("serve did not say its address: %v", err)
	}
	return said.URL
}

// TestServe asks the running program as a browser does, and as others would.
func TestServe(t *testing.T) {
	in, err := url.Parse(startServe(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if in.Hostname() != "127.0.0.1" || len(in.Query().Get("token")) < 43 {
		t.Fatalf("the address is %s", in)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	ask := func(c *http.Client, method, path, host, origin string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+in.Host+path, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	ours := "http://" + in.Host
	for _, tt := range []struct {
		name                       string
		client                     *http.Client
		method, path, host, origin string
		want                       int
	}{
		{"before the token", client, "GET", "/review", in.Host, "", 401},
		{"the token", client, "GET", in.RequestURI(), in.Host, "", 200},
		{"after the token", client, "GET", "/review", in.Host, "", 200},
		{"another client", http.DefaultClient, "GET", "/review", in.Host, "", 401},
		{"a name made to lead here", client, "GET", "/review", "evil.example:" + in.Port(), "", 403},
		{"a form of our own", client, "POST", "/undo", in.Host, ours, 409},
		{"a form of another site", client, "POST", "/undo", in.Host, "http://evil.example", 403},
		{"a form of nobody", client, "POST", "/undo", in.Host, "", 403},
	} {
		if got := ask(tt.client, tt.method, tt.path, tt.host, tt.origin); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
