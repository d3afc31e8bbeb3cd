//go:build unix

package mcp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// What a server is reached with stays with the host that the configuration
// names: a redirect to another one is an error that names it.
func TestRedirects(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	var moved, authorised atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/moved":
			moved.Add(1)
			http.Redirect(w, r, "/new", http.StatusTemporaryRedirect)
		case "/new":
			if r.Header.Get("Authorization") == "Bearer for-one-host" {
				authorised.Add(1)
			}
			http.NotFound(w, r)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(srv.Close)
	for path, want := range map[string]string{
		"/away":  "it redirects to " + other.URL + ", which is not followed",
		"/moved": "Not Found",
		"/round": "more than 5 redirects",
	} {
		s := Server{Name: "s", URL: srv.URL + path, Headers: map[string]string{"Authorization": "Bearer for-one-host"}}
		if _, err := Probe(t.Context(), s, Options{Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if elsewhere.Load() != 0 {
		t.Errorf("another host was asked %d times", elsewhere.Load())
	}
	if moved.Load() == 0 || authorised.Load() != moved.Load() {
		t.Errorf("a redirect on the same host: %d of %d requests had the header", authorised.Load(), moved.Load())
	}
}
