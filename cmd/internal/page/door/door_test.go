package door

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWrap: the token is exchanged once for a cookie, and only that cookie opens pages, from
// the server's own origin. Every answer has the policy.
func TestWrap(t *testing.T) {
	d, err := New(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080})
	if err != nil {
		t.Fatal(err)
	}
	const own = "127.0.0.1:8080"
	if d.URL() != "http://"+own+"/?token="+d.Token {
		t.Errorf("the address is %s", d.URL())
	}
	h := d.Wrap(func(w http.ResponseWriter, _ *http.Request, why string) { http.Error(w, why, http.StatusUnauthorized) },
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	ask := func(method, host, path string, header ...string) *http.Response {
		r := httptest.NewRequest(method, path, nil)
		r.Host = host
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Security-Policy"); got != Policy {
			t.Errorf("%s %s: the policy is %q", method, path, got)
		}
		return w.Result()
	}
	in := ask("GET", own, "/?token="+d.Token)
	if in.StatusCode != http.StatusSeeOther || len(in.Cookies()) != 1 || strings.Contains(in.Header.Get("Set-Cookie"), d.Token) {
		t.Fatalf("the token: %d, %v", in.StatusCode, in.Header)
	}
	cookie := in.Cookies()[0].String()
	for _, tt := range []struct {
		method, host string
		header       []string
		want         int
	}{
		{"GET", own, []string{"Cookie", cookie}, 204},
		{"POST", own, []string{"Cookie", cookie, "Origin", "http://" + own}, 204},
		{"GET", own, nil, 401},
		{"GET", own, []string{"Cookie", in.Cookies()[0].Name + "=" + d.Token}, 401},
		{"POST", own, []string{"Cookie", cookie}, 403},
		{"POST", own, []string{"Cookie", cookie, "Origin", "http://evil.example"}, 403},
		{"GET", "evil.example:8080", []string{"Cookie", cookie}, 403},
		{"GET", own, []string{"Cookie", cookie, "Sec-Fetch-Site", "cross-site"}, 403},
	} {
		if got := ask(tt.method, tt.host, "/review", tt.header...).StatusCode; got != tt.want {
			t.Errorf("%s at %s with %q: %d, want %d", tt.method, tt.host, tt.header, got, tt.want)
		}
	}
}
