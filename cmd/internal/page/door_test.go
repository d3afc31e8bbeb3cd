package page

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"anamnesis/cmd/internal/page/door"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

// site is a running server, with a browser's cookies for it.
type site struct {
	*httptest.Server
	page   *Server
	store  *knowledgebase.Store
	dir    string // of the cards
	home   taskdir.Home
	cookie *http.Cookie
}

// openSite starts a server over an empty knowledge base and gets its cookie. The server ends
// with the test.
func openSite(t testing.TB) *site {
	t.Helper()
	dir := t.TempDir()
	store, err := knowledgebase.Open(dir, &knowledgebase.Options{Watch: true})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	svc, err := session.New(session.Options{Getenv: func(name string) string {
		return map[string]string{"ANAMNESIS_HOME": root}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	st := &site{Server: httptest.NewUnstartedServer(nil), store: store, dir: dir, home: svc.Home}
	if st.page, err = New(st.Listener.Addr(), Options{Tasks: svc, Store: store}); err != nil {
		t.Fatal(err)
	}
	st.Config.Handler = st.page
	st.Start()
	t.Cleanup(func() {
		st.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	st.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	in := st.ask(t, "GET", strings.TrimPrefix(st.page.URLs()[0], st.URL), nil)
	if in.code != http.StatusSeeOther || len(in.cookies) != 1 {
		t.Fatalf("the token was answered with %d and %d cookies", in.code, len(in.cookies))
	}
	st.cookie = in.cookies[0]
	return st
}

// token returns the token of a right.
func (s *site) token(t testing.TB, right door.Right) string {
	t.Helper()
	_, token, _ := strings.Cut(s.page.door.URLs(right)[0], "token=")
	return token
}

// with returns the site as a browser with that right has it.
func (s *site) with(t testing.TB, right door.Right) *site {
	t.Helper()
	other := *s
	if other.cookie = nil; right == door.Anyone {
		return &other
	}
	in := other.ask(t, "GET", "/?token="+s.token(t, right), nil)
	if len(in.cookies) != 1 {
		t.Fatalf("the token to %s was answered with %d", right, in.code)
	}
	other.cookie = in.cookies[0]
	return &other
}

// answer is the answer to a request.
type answer struct {
	code    int
	header  http.Header
	cookies []*http.Cookie
	text    string
}

// ask sends a request as the site's own pages would, changed by edits. With form it is a
// form's.
func (s *site) ask(t testing.TB, method, path string, form url.Values, edits ...func(*http.Request)) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if method != "GET" && method != "HEAD" {
		r.Header.Set("Origin", s.URL)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if s.cookie != nil {
		r.AddCookie(s.cookie)
	}
	for _, edit := range edits {
		edit(r)
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	// Written in one piece: the head of a chunk could stand within any text.
	resp.Body, resp.TransferEncoding, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), nil, int64(len(body))
	var text strings.Builder
	if err := resp.Write(&text); err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, resp.Cookies(), text.String()}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

func noCookie(r *http.Request) { r.Header.Del("Cookie") }

func TestDoor(t *testing.T) {
	s := openSite(t)
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	for _, tt := range []struct {
		name, method, path string
		edits              []func(*http.Request)
		want               int
	}{
		{"with the cookie", "GET", "/review", nil, 200},
		{"with another's cookie before it", "GET", "/review", []func(*http.Request){noCookie, header("Cookie", s.cookie.Name+"=x; "+s.cookie.Name+"="+s.cookie.Value)}, 200},
		{"by the name localhost", "GET", "/review", []func(*http.Request){host("localhost" + port)}, 200},
		{"a link from elsewhere", "GET", "/review", []func(*http.Request){header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "navigate")}, 200},
		{"without the cookie", "GET", "/review", []func(*http.Request){noCookie}, 401},
		{"a guessed cookie", "GET", "/review", []func(*http.Request){noCookie, header("Cookie", s.cookie.Name+"=guess")}, 401},
		{"the token for the cookie", "GET", "/review", []func(*http.Request){noCookie, header("Cookie", s.cookie.Name+"="+s.token(t, door.Jump))}, 401},
		{"a guessed token", "GET", "/?token=guess", nil, 401},
		{"no token", "GET", "/?token=", nil, 401},
		{"the token by POST", "POST", "/?token=" + s.token(t, door.Jump), []func(*http.Request){noCookie}, 401},
		{"the style without the cookie", "GET", "/static/page.css", []func(*http.Request){noCookie}, 200},
		{"a foreign host", "GET", "/review", []func(*http.Request){host("evil.example" + port)}, 403},
		{"a foreign host's token", "GET", "/?token=" + s.token(t, door.Jump), []func(*http.Request){host("evil.example" + port), noCookie}, 403},
		{"a host without the port", "GET", "/review", []func(*http.Request){host("localhost")}, 403},
		{"a foreign host's style", "GET", "/static/page.css", []func(*http.Request){host("evil.example")}, 403},
		{"a foreign origin's post", "POST", "/undo", []func(*http.Request){header("Origin", "http://evil.example")}, 403},
		{"another port's post", "POST", "/undo", []func(*http.Request){header("Origin", "http://127.0.0.1:1")}, 403},
		{"https", "POST", "/undo", []func(*http.Request){header("Origin", "https://127.0.0.1"+port)}, 403},
		{"an opaque origin's post", "POST", "/undo", []func(*http.Request){header("Origin", "null")}, 403},
		{"a post without an origin", "POST", "/undo", []func(*http.Request){header("Origin", "")}, 403},
		{"a foreign origin's read", "GET", "/review", []func(*http.Request){header("Origin", "http://evil.example")}, 403},
		{"embedded elsewhere", "GET", "/static/page.js", []func(*http.Request){header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "no-cors")}, 403},
		{"embedded by another port", "GET", "/review", []func(*http.Request){header("Sec-Fetch-Site", "same-site"), header("Sec-Fetch-Mode", "cors")}, 403},
		{"another method", "DELETE", "/review", nil, 405},
		{"a page that is not there", "GET", "/nowhere", nil, 404},
		{"out of the static files", "GET", "/static/..%2fdoor.go", nil, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := s.ask(t, tt.method, tt.path, nil, tt.edits...)
			if got.code != tt.want {
				t.Errorf("%s %s: %d, want %d\n%s", tt.method, tt.path, got.code, tt.want, got.text)
			}
			checkHeader(t, got.header)
		})
	}
}

// checkHeader holds for every answer, refusals included.
func checkHeader(t testing.TB, h http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Referrer-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Content-Security-Policy": door.Policy,
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, loose := range []string{"unsafe", "*", "data:", "http"} {
		if strings.Contains(door.Policy, loose) {
			t.Errorf("the policy allows %s", loose)
		}
	}
}

func TestDoorCookie(t *testing.T) {
	s := openSite(t)
	c := s.cookie
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("cookie %v: want HttpOnly, SameSite=Strict, this host alone", c)
	}
	if len(c.Value) < 43 || c.Value == s.token(t, door.Jump) {
		t.Error("the cookie's value must be a secret of its own")
	}
	in := s.ask(t, "GET", "/?token="+s.token(t, door.Jump), nil, noCookie)
	if to := in.header.Get("Location"); to != "/" {
		t.Errorf("the token leads to %q: it must leave the address", to)
	}
}

// A slow client does not hold a connection for ever: a form whose text does not arrive is
// cut off, with or without the cookie.
func TestSlowForm(t *testing.T) {
	s := openSite(t)
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := s.page.server(t.Context())
	if srv.ReadTimeout <= 0 || srv.WriteTimeout <= 0 || srv.ReadHeaderTimeout <= 0 || srv.IdleTimeout <= 0 {
		t.Errorf("reading %v, writing %v, header %v, idle %v: want a limit to each", srv.ReadTimeout, srv.WriteTimeout,
			srv.ReadHeaderTimeout, srv.IdleTimeout)
	}
	srv.ReadTimeout = 10 * time.Millisecond
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	defer func() { srv.Close(); <-ended }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil { // for a server that never does
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "POST /undo HTTP/1.1\r\nHost: %s\r\nContent-Length: 100000\r\n\r\nact=", strings.TrimPrefix(s.URL, "http://")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); err != nil { // until the server hangs up
		t.Error(err)
	}
}

func TestListen(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1"} {
		if l, err := Listen(addr); err == nil {
			l.Close()
			t.Errorf("%s was listened on", addr)
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:0"} {
		l, err := Listen(addr)
		if err != nil {
			t.Fatalf("%s: %v", addr, err)
		}
		l.Close()
	}
}
