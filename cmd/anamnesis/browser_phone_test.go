//go:build unix

package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// proxyTo makes a proxy with HTTPS, as Caddy and Tailscale are: it hands Host on. Its target is set by the caller.
func proxyTo(t *testing.T, target *url.URL) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.SetXForwarded()
		r.Out.Host = r.In.Host
	}})
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // browsers complain about its certificate
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// TestBrowserPhone lets a phone in through a proxy with an address that only reads, then ends its session.
func TestBrowserPhone(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	writeCard(t, home, "c1", "the lesson", "2026-01-01T10:00:00Z",
		"- **Issue**: the cache is stale\n- **Solution**: build it anew")
	var target url.URL
	proxy := proxyTo(t, &target)
	desk, err := url.Parse(startServe(t, home, "--origin", proxy.URL))
	if err != nil {
		t.Fatal(err)
	}
	target = url.URL{Scheme: "http", Host: desk.Host}
	browse(t, "phone.cjs", desk.String(), map[string]any{"proxy": proxy.URL, "card": "c1"})
}

// TestServeThroughTunnel reaches the page as the guide says: by a tunnel such as SSH's to another port, which must be
// named, and by a proxy that sends a Host of its own.
func TestServeThroughTunnel(t *testing.T) {
	t.Parallel()
	tunnel, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unnamed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	origin := "http://" + tunnel.Addr().String()
	in, err := url.Parse(startServe(t, t.TempDir(), "--origin", origin, "--origin", "https://desk.example.net"))
	if err != nil {
		t.Fatal(err)
	}
	var forwards sync.WaitGroup
	for _, l := range []net.Listener{tunnel, unnamed} {
		forwards.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				forwards.Go(func() { forward(c, in.Host) })
			}
		})
	}
	transport := &http.Transport{DisableKeepAlives: true} // so that the forwards end
	defer func() { tunnel.Close(); unnamed.Close(); forwards.Wait() }()
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ask := func(method, to string, edits ...string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, to, strings.NewReader("act=0"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(edits); i += 2 {
			r.Header.Set(edits[i], edits[i+1])
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(body)
	}
	entered, _ := ask("GET", origin+"/?"+in.RawQuery)
	if entered.StatusCode != http.StatusSeeOther || len(entered.Cookies()) != 1 {
		t.Fatalf("through the tunnel: %d", entered.StatusCode)
	}
	cookie := entered.Cookies()[0].String()
	for _, tt := range []struct {
		name, method, to, origin string
		want                     int
	}{
		{"reads", "GET", origin + "/review", "", 200},
		{"a form", "POST", origin + "/undo", origin, 409}, // there is nothing to undo
		{"a form of a proxy that sends its own Host", "POST", "http://" + in.Host + "/undo", "https://desk.example.net", 409},
		{"a form of another site", "POST", origin + "/undo", "https://evil.example", 403},
		{"a tunnel without a name", "GET", "http://" + unnamed.Addr().String() + "/review", "", 403},
	} {
		edits := []string{"Cookie", cookie}
		if tt.origin != "" {
			edits = append(edits, "Origin", tt.origin)
		}
		if resp, body := ask(tt.method, tt.to, edits...); resp.StatusCode != tt.want {
			t.Errorf("%s: %d, want %d\n%s", tt.name, resp.StatusCode, tt.want, body)
		} else if tt.want == 403 && tt.method == "GET" && !strings.Contains(body, "start it with --origin") {
			t.Errorf("%s: the remedy is missing:\n%s", tt.name, body)
		}
	}
}

// forward copies between a connection and an address, as a tunnel does, until either ends.
func forward(c net.Conn, to string) {
	defer c.Close()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return // the client sees that its connection ends
	}
	defer far.Close()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(far, c); far.Close() })
	both.Go(func() { _, _ = io.Copy(c, far); c.Close() })
	both.Wait()
}
