package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// endpoint is a server of either kind, which embeds a text as (its length, 1),
// and answers the first requests with the given statuses.
func endpoint(t *testing.T, kind Kind, statuses ...int) (url string, asked *[]request) {
	t.Helper()
	handler, asked := embeddings(t, statuses...)
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	if kind == OpenAI {
		return s.URL + "/v1", asked
	}
	return s.URL, asked
}

// request is what an endpoint is asked.
type request struct {
	Model string   `json:"model"`
	Input []string `json:"input"`
}

// embeddings is what an endpoint serves.
func embeddings(t *testing.T, statuses ...int) (_ http.Handler, asked *[]request) {
	asked = new([]request)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/embeddings", func(w http.ResponseWriter, r *http.Request) {
		var q request
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		*asked = append(*asked, q)
		if n := len(*asked); n <= len(statuses) {
			w.WriteHeader(statuses[n-1])
			fmt.Fprint(w, `{"error":{"message":"not\nnow"}}`)
			return
		}
		var out openai.EmbeddingResponse
		for i := range q.Input {
			i = len(q.Input) - 1 - i // order is what index says
			out.Data = append(out.Data, openai.Embedding{Index: i, Embedding: []float32{float32(len(q.Input[i])), 1}})
		}
		json.NewEncoder(w).Encode(out)
	})
	return mux, asked
}

// inMemory answers requests without a network, which the clock of a test cannot wait for.
type inMemory struct{ http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	return w.Result(), nil
}

func TestBothKinds(t *testing.T) {
	for _, kind := range []Kind{OpenAI, Ollama} {
		t.Run(string(kind), func(t *testing.T) {
			url, asked := endpoint(t, kind)
			e, err := New(Options{Kind: kind, URL: url + "/", Model: "m", CardPrefix: "doc: ", QueryPrefix: "q: "})
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.EmbedCards(t.Context(), []string{"a", "bcd", strings.Repeat("é", maxInput)})
			if want := [][]float32{{6, 1}, {8, 1}, {maxInput - 1, 1}}; err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, %v; want %v", got, err, want)
			}
			q, err := e.EmbedQuery(t.Context(), "xy")
			if err != nil || !reflect.DeepEqual(q, []float32{5, 1}) {
				t.Errorf("query: %v, %v", q, err)
			}
			if len(*asked) != 2 || (*asked)[0].Model != "m" || (*asked)[1].Input[0] != "q: xy" {
				t.Errorf("asked %+v", *asked)
			}
		})
	}
}

// TestNew: an embedder needs a known kind, an address with a host, and a model.
func TestNew(t *testing.T) {
	for _, row := range []struct {
		o    Options
		want string // of the error; "" where it is one
	}{
		{Options{Kind: OpenAI, URL: "https://h/v1", Model: "m"}, ""}, {Options{Kind: OpenAI, URL: "http://h/v1", Model: "m", Dimensions: 8}, ""},
		{Options{Kind: Ollama, Model: "m"}, ""}, {Options{Kind: "other", URL: "https://h/v1", Model: "m"}, "kind"},
		{Options{Kind: OpenAI, Model: "m"}, "url"}, {Options{Kind: OpenAI, URL: "http:///v1", Model: "m"}, "url"},
		{Options{Kind: OpenAI, URL: "ftp://h/v1", Model: "m"}, "url"}, {Options{Kind: OpenAI, URL: "http://[h/v1", Model: "m"}, "url"},
		{Options{Kind: OpenAI, URL: "https://h/v1"}, "name the model"}, {Options{Kind: Ollama, Model: "m", Dimensions: -1}, "dimensions -1"},
	} {
		_, err := New(row.o)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %q", row.o, err, row.want)
		}
	}
}

func TestRetries(t *testing.T) {
	for _, tt := range []struct {
		statuses []int
		asked    int
		ok       bool
	}{
		{[]int{429, 503}, 3, true},
		{[]int{500, 500, 500}, 3, false},
		{[]int{401}, 1, false},
		{[]int{400}, 1, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			handler, asked := embeddings(t, tt.statuses...)
			e, err := New(Options{Kind: OpenAI, URL: "http://embed/v1", Model: "m", Key: "secret", Client: &http.Client{Transport: inMemory{handler}}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.EmbedCards(t.Context(), []string{"a"})
			if (err == nil) != tt.ok || len(*asked) != tt.asked {
				t.Errorf("%v: asked %d times, %v", tt.statuses, len(*asked), err)
			}
			if err != nil && (!strings.Contains(err.Error(), "not now") || strings.Contains(err.Error(), "secret")) {
				t.Errorf("%v: error %q", tt.statuses, err)
			}
		})
	}
	// A query is not tried again: a search waits for it.
	url, asked := endpoint(t, OpenAI, 503)
	e, err := New(Options{Kind: OpenAI, URL: url, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.EmbedQuery(t.Context(), "a"); err == nil || len(*asked) != 1 {
		t.Errorf("query asked %d times, %v", len(*asked), err)
	}
}

// TestBadReplies: what is no embedding of each text is refused in one line, and not tried again.
func TestBadReplies(t *testing.T) {
	for _, tt := range []struct {
		status      int
		reply, want string
	}{
		{200, `<html>`, "invalid character"},
		{200, `{}`, "embedding 0 has 0 dimensions"},
		{200, `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`, "embedding for text 0"},
		{200, `{"data":[{"index":5,"embedding":[1]}]}`, "embedding for text 5"},
		{200, `{"data":[{"index":1,"embedding":[1]}]}`, "dimensions"},
		{200, `{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1]}]}`, "embedding 1 has 1 dimensions"},
		{200, `{"data":[{"index":0,"embedding":[0,1]},{"index":1,"embedding":[0,-0.0]}]}`, "embedding 1 is all zeros"},
		{200, `{"data":[{"index":0,"embedding":[0,1]},{"index":1,"embedding":null}]}`, "embedding 1 has 0 dimensions"},
		{404, `{"error":"model \"x\" not found"}`, "not found"},
		{404, "oops" + strings.Repeat("\nno", 500), "404"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.reply)
		}))
		e, err := New(Options{Kind: OpenAI, URL: s.URL, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.EmbedCards(t.Context(), []string{"a", "b"})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") ||
			len(err.Error()) > 2*maxWords {
			t.Errorf("%.80s: %v, want one line with %q", tt.reply, err, tt.want)
		}
		s.Close()
	}
}

func TestDownAndCancelled(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	url := s.URL
	s.Close()
	e, err := New(Options{Kind: Ollama, URL: url, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if _, passing, err := e.ask(t.Context(), time.Minute, []string{"a"}); err == nil || passing {
		t.Errorf("nobody listens: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.EmbedCards(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "embedder.yaml")
	env := func(name string) string { return map[string]string{"KEY": "k"}[name] }
	if e, err := Load(path, env); e != nil || err != nil {
		t.Errorf("no file: %v, %v", e, err)
	}
	for _, tt := range []struct{ text, want string }{
		{"kind: ollama\nmodel: m\n", ""},
		{"kind: openai\nurl: https://x.example/v1\nmodel: m\nkey_env: KEY\ndimensions: 256\ncard_prefix: 'd: '\n", ""},
		{"kind: openai\nmodel: m\n", "url"},
		{"kind: other\nmodel: m\n", "kind"},
		{"kind: ollama\n", "name the model"},
		{"kind: ollama\nurl: localhost\nmodel: m\n", "url"},
		{"kind: ollama\nmodel: m\nkey_env: NONE\n", "NONE, which is not set"},
		{"kind: ollama\nmodel: m\nkey: abc\n", "key"},
		{"kind: [\n", "embedder.yaml"},
	} {
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := Load(path, env)
		if tt.want == "" && (err != nil || e == nil) ||
			tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.text, err, tt.want)
		}
		if e != nil && strings.Contains(e.Fingerprint(), "k\"") {
			t.Errorf("the key is in the fingerprint %s", e.Fingerprint())
		}
	}
}
