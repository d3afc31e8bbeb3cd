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
)

// endpoint is a server of either kind, which embeds a text as (its length, 1),
// and answers the first requests with the given statuses.
func endpoint(t *testing.T, kind Kind, statuses ...int) (url string, asked *[]request) {
	t.Helper()
	handler, asked := embeddings(t, kind, statuses...)
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	if kind == OpenAI {
		return s.URL + "/v1", asked
	}
	return s.URL, asked
}

// embeddings is what an endpoint serves.
func embeddings(t *testing.T, kind Kind, statuses ...int) (_ http.Handler, asked *[]request) {
	asked = new([]request)
	path := map[Kind]string{OpenAI: "POST /v1/embeddings", Ollama: "POST /api/embed"}[kind]
	mux := http.NewServeMux()
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		var q request
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		*asked = append(*asked, q)
		if n := len(*asked); n <= len(statuses) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(statuses[n-1])
			fmt.Fprint(w, `{"error":{"message":"not\nnow"}}`)
			return
		}
		var out reply
		for i := range q.Input {
			i = len(q.Input) - 1 - i // order is what index says
			v := []float32{float32(len(q.Input[i])), 1}
			if kind == Ollama {
				out.Embeddings = append([][]float32{v}, out.Embeddings...)
				continue
			}
			out.Data = append(out.Data, struct {
				Index     int       `json:"index"`
				Embedding []float32 `json:"embedding"`
			}{i, v})
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
			handler, asked := embeddings(t, OpenAI, tt.statuses...)
			e, err := New(Options{Kind: OpenAI, URL: "http://embed/v1", Model: "m", Key: "secret", Client: &http.Client{Transport: inMemory{handler}}})
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			_, err = e.EmbedCards(t.Context(), []string{"a"})
			paused := time.Since(begun)
			if (err == nil) != tt.ok || len(*asked) != tt.asked {
				t.Errorf("%v: asked %d times, %v", tt.statuses, len(*asked), err)
			}
			if err != nil && (!strings.Contains(err.Error(), "not now") || strings.Contains(err.Error(), "secret")) {
				t.Errorf("%v: error %q", tt.statuses, err)
			}
			*asked = nil
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := e.EmbedCards(short, []string{"a"}); err == nil || !strings.Contains(err.Error(), "not now") {
				t.Errorf("%v: the time is over before the next try: %v, want the endpoint's words", tt.statuses, err)
			}
			pauses := time.Duration(tt.asked - 1)
			if paused < pauses*7*time.Second || paused > pauses*maxPause {
				t.Errorf("%v: paused %v, asked to wait 7s each time", tt.statuses, paused)
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

func TestBadReplies(t *testing.T) {
	for _, tt := range []struct{ reply, want string }{
		{`<html>`, "not an embedding endpoint's"},
		{`{}`, "0 embeddings for 2 texts"},
		{`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`, "embedding for text 0"},
		{`{"data":[{"index":5,"embedding":[1]}]}`, "embedding for text 5"},
		{`{"data":[{"index":1,"embedding":[1]}]}`, "dimensions"},
		{`{"embeddings":[[1,2],[1]]}`, "embedding 1 has 1 dimensions"},
		{`{"embeddings":[[1,2]]}`, "1 embeddings for 2 texts"},
		{`{"embeddings":[[],[]]}`, "0 dimensions"},
	} {
		if _, err := vectors([]byte(tt.reply), 2); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want …%s…", tt.reply, err, tt.want)
		}
	}
	for data, want := range map[string]string{
		`{"error":"model \"x\" not found, try pulling it first"}`: `404: model "x" not found, try pulling it first`,
		`{"error":{"message":"no"}}`:                              "404: no",
		`{"error":7}`:                                             "404",
		"oops":                                                    "404",
	} {
		if got := refusal("404", []byte(data)); got != want {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
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
	var f *fault
	if _, err := e.EmbedQuery(t.Context(), "a"); !errors.As(err, &f) || f.passing {
		t.Errorf("nobody listens: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.EmbedCards(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func FuzzVectors(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[3,4]}]}`))
	f.Add([]byte(`{"embeddings":[[1,2],[3,4]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := vectors(data, 2)
		if err == nil && (len(got) != 2 || len(got[0]) == 0 || len(got[0]) != len(got[1])) {
			t.Errorf("accepted %v", got)
		}
	})
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
		if tt.want == "" && (err != nil || e == nil) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.text, err, tt.want)
		}
		if e != nil && strings.Contains(e.Fingerprint(), "k\"") {
			t.Errorf("the key is in the fingerprint %s", e.Fingerprint())
		}
	}
}

// A vector without a number in it is refused, and not kept as one that says
// nothing of its text.
func TestNullVectorsAreRefused(t *testing.T) {
	for _, data := range []string{
		`{"embeddings":[[0,0,0]]}`, `{"embeddings":[[0.1,null,0.2]]}`, `{"embeddings":[[null,1]]}`, `{"embeddings":[null]}`, `{"embeddings":null}`,
		`{"data":[{"index":0,"embedding":[0.5, null]}]}`, `{"data":[{"index":0,"embedding":null}]}`, `{"embeddings":[[0,-0.0]]}`,
	} {
		if got, err := vectors([]byte(data), 1); err == nil {
			t.Errorf("%s gives %v", data, got)
		}
	}
	if _, err := vectors([]byte(`{"embeddings":[[0,1]],"error":null,"usage":{"x":null}}`), 1); err != nil {
		t.Error(err)
	}
}
