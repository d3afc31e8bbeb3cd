package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"anamnesis/orchestrator/tool"
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
		if _, err := Probe(t.Context(), s, Options{Dir: t.TempDir()}); err == nil ||
			!strings.Contains(err.Error(), want) {
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

// TestNewestProtocol talks protocol 2026-07-28 to the library's own server over
// HTTP, which wants a header with every request: calls, and tools that come while
// it is connected.
func TestNewestProtocol(t *testing.T) {
	t.Parallel()
	remote := sdk.NewServer(&sdk.Implementation{Name: "own", Version: "1"}, nil)
	add := func(name string) {
		remote.AddTool(&sdk.Tool{Name: name, InputSchema: map[string]any{"type": "object"}},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "said by " + name}}}, nil
			})
	}
	add("first")
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return remote },
		&sdk.StreamableHTTPOptions{Stateless: true})
	var without atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "k" {
			without.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	s := open(t, Options{}, Server{Name: "r", URL: srv.URL, Headers: map[string]string{"X-Key": "k"}})
	tools, news := offered(t, s)
	if len(news) > 0 || tools["mcp__r__first"] == nil {
		t.Fatalf("news %q, %d tools", news, len(tools))
	}
	if v := s.servers[0].ses.cs.InitializeResult().ProtocolVersion; v != "2026-07-28" {
		t.Errorf("protocol %s", v)
	}
	add("second")
	settled(t, s, tools["mcp__r__first"],
		func(now map[string]tool.Tool, _ []string) bool { return now["mcp__r__second"] != nil })
	if res := call(t, tools["mcp__r__first"], nil); res.Text != "said by first" {
		t.Errorf("%+v", res)
	}
	if without.Load() > 0 {
		t.Errorf("%d requests had no header", without.Load())
	}
}

// Content of a kind that MCP does not know, as one answer or as an event, is an answer that cannot be read, and no
// lost connection.
func TestUnknownKindOverHTTP(t *testing.T) {
	t.Parallel()
	for name, events := range map[string]bool{"one answer": false, "events": true} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var q fakeRequest
			if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.ID == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			answer := `"result":{"content":[{"type":"scent","of":"rain"}]}`
			switch q.Method {
			case "server/discover":
				answer = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
			case "tools/list":
				answer = `"result":{"tools":[` + fakeTools([]string{"smell"}) + `]}`
			}
			format := "%s\n"
			w.Header().Set("Content-Type", "application/json")
			if events {
				format = "event: message\ndata: %s\n\n"
				w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			}
			fmt.Fprintf(w, format, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, q.ID, answer))
		}))
		t.Cleanup(srv.Close)
		tools, news := offered(t, open(t, Options{}, Server{Name: "h", URL: srv.URL}))
		if len(news) > 0 {
			t.Errorf("%s: %q", name, news)
		}
		if res := call(t, tools["mcp__h__smell"], nil); !res.IsError ||
			!strings.Contains(res.Text,
				`cannot be read: calling "tools/call": unrecognized content type "scent". The call may have taken effect.`) {
			t.Errorf("%s: %+v", name, res)
		}
	}
}
