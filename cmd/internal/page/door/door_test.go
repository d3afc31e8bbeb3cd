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
	token := d.tokens[Jump]
	if got := d.URLs(Jump); len(got) != 1 || got[0] != "http://"+own+"/?token="+token {
		t.Errorf("the addresses are %q", got)
	}
	h := d.Wrap(
		func(w http.ResponseWriter, _ *http.Request, why string) { http.Error(w, why, http.StatusUnauthorized) },
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
	in := ask("GET", own, "/?token="+token)
	if in.StatusCode != http.StatusSeeOther || len(in.Cookies()) != 1 ||
		strings.Contains(in.Header.Get("Set-Cookie"), token) {
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
		{"GET", own, []string{"Cookie", in.Cookies()[0].Name + "=" + token}, 401},
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

// jar is a browser: it opens the door's addresses with the cookie it has.
type jar struct {
	h       http.Handler
	cookies []*http.Cookie
}

func (j *jar) ask(target string, header ...string) int {
	r := httptest.NewRequest("GET", target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	for _, c := range j.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	j.h.ServeHTTP(w, r)
	j.cookies = append(j.cookies, w.Result().Cookies()...)
	return w.Code
}

func newJars(t *testing.T, n int, origins ...string) (*Door, []*jar) {
	t.Helper()
	d, err := New(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, origins...)
	if err != nil {
		t.Fatal(err)
	}
	h := d.Wrap(func(w http.ResponseWriter, _ *http.Request, _ string) { w.WriteHeader(http.StatusUnauthorized) },
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(200 + int(SessionOf(r).Right)) }))
	var out []*jar
	for range n {
		out = append(out, &jar{h: h})
	}
	return d, out
}

// TestSessions: each token gives its right, and a session that was revoked opens nothing, nor do the tokens before it.
func TestSessions(t *testing.T) {
	d, jars := newJars(t, 3)
	const page = "http://127.0.0.1:8080/review"
	old := make(map[Right]string)
	for i, right := range []Right{Read, Answer, Jump} {
		old[right] = d.URLs(right)[0]
		if code := jars[i].ask(old[right]); code != http.StatusSeeOther {
			t.Fatalf("the address to %s: %d", right, code)
		}
		if code := jars[i].ask(page); code != 200+int(right) {
			t.Errorf("the right to %s: %d", right, code)
		}
	}
	jars[0].ask(old[Answer]) // the same browser, with more rights
	if all := d.Sessions(); len(all) != 3 || all[0].ID != 4 || all[0].Right != Answer {
		t.Fatalf("sessions: %+v", all)
	}
	d.Revoke(func(s Session) bool { return s.Right == Answer })
	for i, want := range []int{401, 401, 200 + int(Jump)} {
		if code := jars[i].ask(page); code != want {
			t.Errorf("browser %d: %d, want %d", i, code, want)
		}
	}
	for right, url := range old {
		if code := (&jar{h: jars[0].h}).ask(url); code != 401 {
			t.Errorf("the earlier address to %s: %d", right, code)
		}
	}
	for range 2 * maxSessions {
		jars[2].ask(page)
		(&jar{h: jars[0].h}).ask(d.URLs(Read)[0])
	}
	if n := len(d.Sessions()); n != maxSessions || jars[2].ask(page) != 200+int(Jump) {
		t.Errorf("%d sessions, and the one in use is answered with %d", n, jars[2].ask(page))
	}
}

// TestOrigins: the names of a user's proxies are accepted, and others are not.
func TestOrigins(t *testing.T) {
	for _, bad := range []string{"desk.example.net", "https://", "ftp://desk.example.net", "https://desk.example.net/page", "https://u@desk.example.net", "https://desk.example.net?x", "https://de sk"} {
		if _, err := New(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, bad); err == nil ||
			!strings.Contains(err.Error(), "is no origin") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	d, jars := newJars(t, 3, "https://Desk.example.net/", "http://desk:8443")
	urls := d.URLs(Jump)
	if len(urls) != 3 || !strings.HasPrefix(urls[1], "https://desk.example.net/?token=") || !strings.HasPrefix(urls[2], "http://desk:8443/?token=") {
		t.Fatalf("the addresses are %q", urls)
	}
	for i, url := range urls {
		if code := jars[i].ask(url); code != http.StatusSeeOther || jars[i].cookies[0].Secure != (i == 1) {
			t.Errorf("%s: %d, secure: %v", url, code, jars[i].cookies[0].Secure)
		}
	}
	for _, tt := range []struct {
		target, origin string
		want           int
	}{
		{"http://desk.example.net/x", "https://desk.example.net", 203},
		{"http://DESK.example.net/x", "", 203},
		{"http://127.0.0.1:8080/x", "https://desk.example.net", 203}, // a proxy that writes its own Host
		{"http://desk.example.net/x", "http://desk.example.net", 403},
		{"http://desk.example.net:8080/x", "", 403},
		{"http://example.net/x", "", 403},
	} {
		header := []string{"Origin", tt.origin}
		if tt.origin == "" {
			header = nil
		}
		if code := jars[0].ask(tt.target, header...); code != tt.want {
			t.Errorf("%s from %q: %d, want %d", tt.target, tt.origin, code, tt.want)
		}
	}
}
