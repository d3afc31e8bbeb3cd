package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/tool"
)

const article = `<html><head><title>On memory</title></head><body><nav><a href="/menu">Menu entry</a></nav><article><h1>On memory</h1>
<p>%s</p><p>A <a href="/far">link</a> and <b>bold</b> words.</p><script>alert("never shown")</script></article><footer>Footer words</footer></body></html>`

// site answers on the loopback in the ways a page can.
func site(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	page := func(path, kind string, body []byte) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(body)
		})
	}
	long := strings.Repeat("It is a long sentence about what is remembered, and about what is not. ", 20)
	page("/article", "text/html; charset=utf-8", fmt.Appendf(nil, article, long))
	page("/latin", "text/plain; charset=iso-8859-1", []byte("caf\xe9"))
	page("/json", "application/json", []byte(`{"a": 1}`))
	page("/binary", "image/png", []byte("\x89PNG"))
	page("/big", "text/plain", bytes.Repeat([]byte("x"), MaxBodyBytes+1))
	page("/many", "text/plain", []byte(strings.Repeat("é", MaxResultRunes+10)))
	page("/deep", "text/html", []byte(strings.Repeat("<div>", 2_000)))
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/plain")
		z := gzip.NewWriter(w)
		_, _ = z.Write(bytes.Repeat([]byte{'0'}, 8*MaxBodyBytes))
		_ = z.Close()
	})
	mux.HandleFunc("/loop",
		func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/times", func(w http.ResponseWriter, r *http.Request) {
		if n, _ := strconv.Atoi(r.URL.Query().Get("n")); n > 0 {
			http.Redirect(w, r, fmt.Sprint("/times?n=", n-1), http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "arrived")
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func fetched(t *testing.T, tl tool.Tool, args map[string]any) tool.Result {
	t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tl.Call(t.Context(), new(tool.Env), data)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFetch(t *testing.T) {
	s := site(t)
	tl := FetchURL(Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	for path, tc := range map[string]struct {
		has, lacks []string
		fails      bool
	}{
		"/article":   {[]string{"status 200", "# On memory", "remembered", "[link](" + s.URL + "/far)", "**bold**"}, []string{"Menu entry", "never shown"}, false},
		"/latin":     {[]string{"café"}, nil, false},
		"/json":      {[]string{`{"a": 1}`}, nil, false},
		"/binary":    {[]string{"image/png", "not text"}, nil, true},
		"/big":       {[]string{"more than 5242880 bytes"}, nil, true},
		"/bomb":      {[]string{"more than 5242880 bytes"}, nil, true},
		"/many":      {[]string{"characters 0 to 50000 of 50010; start 50000 continues"}, nil, false},
		"/deep":      {[]string{"exceeds 512"}, nil, true},
		"/loop":      {[]string{"more than 5 redirects"}, nil, true},
		"/times?n=5": {[]string{"status 200"}, nil, false},
		"/times?n=6": {[]string{"more than 5 redirects"}, nil, true},
		"/none":      {[]string{"status 404"}, nil, true},
		"/away?to=http://169.254.169.254/latest/meta-data": {[]string{"169.254.169.254 is not a public address"}, nil, true},
		"/away?to=http://[::1]:9/":                         {[]string{"::1 is not a public address"}, nil, true},
		"/away?to=file:///etc/passwd":                      {[]string{"want http://"}, nil, true},
		"/away?to=http://localhost.localdomain.invalid/":   {nil, nil, true},
	} {
		r := fetched(t, tl, map[string]any{"url": s.URL + path})
		if r.IsError != tc.fails || !r.Network {
			t.Errorf("%s: error %v, network %v: %.300s", path, r.IsError, r.Network, r.Text)
		}
		for _, h := range tc.has {
			if !strings.Contains(r.Text, h) {
				t.Errorf("%s: no %q in %.600s", path, h, r.Text)
			}
		}
		for _, l := range tc.lacks {
			if strings.Contains(r.Text, l) {
				t.Errorf("%s: %q in %.600s", path, l, r.Text)
			}
		}
	}
	if r := fetched(t, tl, map[string]any{"url": s.URL + "/article", "whole": true}); !strings.Contains(r.Text, "Menu entry") {
		t.Errorf("whole: %s", r.Text)
	}
	if r := fetched(t, tl, map[string]any{"url": s.URL + "/many", "start": 50_000}); !strings.HasSuffix(r.Text, "]\n"+strings.Repeat("é", 10)) {
		t.Errorf("start: %.200s", r.Text)
	}
}

// Nothing local is reached when nobody allowed it, whatever it is written as.
func TestFetchRefuses(t *testing.T) {
	s := site(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	tl := FetchURL(Options{})
	for _, address := range []string{
		s.URL, "http://localhost:" + port, "http://0:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://2130706433:" + port, "http://0x7f.1:" + port,
		"ftp://example.org", "http://", "//example.org", "http://user:word@example.org", "javascript:alert(1)",
	} {
		if r := fetched(t, tl, map[string]any{"url": address}); !r.IsError || strings.Contains(r.Text, "status 200") {
			t.Errorf("%s: %s", address, r.Text)
		}
	}
}

func TestSearch(t *testing.T) {
	var asked *http.Request
	var body bytes.Buffer
	answer := `{"results":[{"title":"A  title","url":"https://a.example","content":"from\nhere"}],"web":{"results":[{"title":"B","url":"https://b.example","description":"there\u200b"}]}}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Clone(t.Context())
		body.Reset()
		_, _ = body.ReadFrom(r.Body)
		fmt.Fprint(w, answer)
	}))
	defer s.Close()
	for engine, check := range map[string]func() bool{
		"searxng": func() bool {
			return asked.URL.Path == "/search" && asked.URL.Query().Get("format") == "json" &&
				asked.URL.Query().Get("q") == "go & on"
		},
		"brave": func() bool {
			return asked.Header.Get("X-Subscription-Token") == "k" && asked.URL.Query().Get("count") == "8"
		},
		"tavily": func() bool {
			return asked.Header.Get("Authorization") == "Bearer k" && strings.Contains(body.String(), `"max_results":8`)
		},
	} {
		o := Options{Search: Search{Engine: engine, URL: s.URL, Key: "k"}}
		if err := o.Search.Check(); err != nil {
			t.Fatal(err)
		}
		tl, ok := SearchWeb(o)
		if !ok {
			t.Fatal("no tool")
		}
		r := fetched(t, tl, map[string]any{"query": "go & on"})
		if !check() || r.IsError || !r.Network || !strings.Contains(r.Text, "1. A title\n   https://a.example\n   from here\n2. B\n   https://b.example\n   there\\u{200b}") {
			t.Errorf("%s: %s %s", engine, asked.URL, r.Text)
		}
	}
	if _, ok := SearchWeb(Options{}); ok {
		t.Error("there is a tool where no engine is configured")
	}
	for _, bad := range []Search{{Engine: "searxng"}, {Engine: "brave"}, {Engine: "other"}, {Engine: "tavily", Key: "k", URL: "ftp://x"}} {
		if bad.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// TestFetchRedacts: no secret of a page is in the result, however HTML writes it and markdown would.
func TestFetchRedacts(t *testing.T) {
	keys := []string{
		"ghp_" + "1a2B3c4D5e6F7g8H9i0J1k2L3m4N5o6P7q8R", "glpat-" + "aBQdEwgHtjKmNpRsUvXy", "sk_live_" + "51HqLyjWDarjtT1zdp7dc",
		"hvs." + "CAESIKx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1", "xoxb-" + "210987654321-abcDEF123ghi", "AIza" + "SyD3-fGh7JkL0_pQr5StUv8WxYz1Ab4Cd6E",
		"github_pat_" + "11Kx8Rt3Vq0ZmL7nWbYc2H_dJf9Gs4Pa6Ku1Te5XoBi7NvQz", "Kx88Q~" + "Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5X",
	}
	forms := map[string]string{
		"text": "<p>%s</p>", "code": "<pre><code>%s</code></pre>", "link": `<a href="https://h/?k=%s">here</a>`, "cell": "<table><tr><td>%s</td></tr></table>",
		"split": "<p><b>%s</b></p>", "spans": "", "entities": "", "heading": "<h2>%s</h2>", "emphasis": "<p>*%s*</p>",
	}
	for _, key := range keys {
		for name, form := range forms {
			body := strings.ReplaceAll(form, "%s", key)
			switch name {
			case "spans":
				body = fmt.Sprintf("<pre><span>%s</span><span>%s</span></pre>", key[:9], key[9:])
			case "entities":
				body = "<p>" + strings.NewReplacer("_", "&#95;", "-", "&#x2d;", "~", "&#126;", ".",
					"&period;").Replace(key) + "</p>"
			}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprintf(w, "<html><body><article><h1>Keys</h1>%s</article></body></html>", body)
			}))
			args, err := json.Marshal(map[string]any{"url": s.URL, "whole": true})
			if err != nil {
				t.Fatal(err)
			}
			env := &tool.Env{Redactor: redact.New([]byte("0123456789abcdef"), nil)}
			r, err := FetchURL(Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}).Call(
				t.Context(), env, args)
			s.Close()
			if err != nil || r.IsError || !strings.Contains(r.Text, "redacted") ||
				strings.Contains(r.Text, key[len(key)-9:]) {
				t.Errorf("%s as %s: %v %s", key[:6], name, err, r.Text)
			}
		}
	}
}
