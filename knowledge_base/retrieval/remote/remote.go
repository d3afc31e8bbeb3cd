// Package remote asks an embedding model over HTTP: any endpoint compatible
// with OpenAI's, or Ollama's own.
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"anamnesis/knowledge_base/retrieval"
)

// Kind is the form of an endpoint.
type Kind string

// The kinds of endpoints.
const (
	OpenAI Kind = "openai" // POST <url>/embeddings, as OpenAI's with <url> https://api.openai.com/v1
	Ollama Kind = "ollama" // POST <url>/api/embed, by default at http://127.0.0.1:11434
)

// Limits of one request.
const (
	cardsTimeout = time.Minute
	queryTimeout = 3 * time.Second // a search waits for it
	tries        = 3
	maxPause     = 10 * time.Second
	maxReply     = 64 << 20 // bytes
	// maxInput bounds a text in bytes: models take 8,192 tokens at most, and a
	// longer text is an error there. What is cut off is found by its words.
	maxInput = 8000
)

// Options say which model is asked. URL (for OpenAI) and Model must be given.
type Options struct {
	Kind  Kind
	URL   string
	Model string
	Key   string // sent as a bearer token; "" sends none
	// Dimensions asks for shorter vectors, where the model can give them; 0 is
	// its own size.
	Dimensions int
	// CardPrefix and QueryPrefix are put before each text, as some models are
	// trained to expect ("search_document: ", "search_query: ").
	CardPrefix, QueryPrefix string
	Client                  *http.Client // nil: one of its own
}

// Embedder is a model behind an endpoint. It is safe for concurrent use.
type Embedder struct {
	o      Options
	url    string
	client *http.Client
}

var _ retrieval.Embedder = (*Embedder)(nil)

// New checks the options; it asks nothing.
func New(o Options) (*Embedder, error) {
	e := &Embedder{o: o, client: o.Client}
	if e.client == nil {
		e.client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	path := "/embeddings"
	switch {
	case o.Kind == Ollama:
		path = "/api/embed"
		if o.URL == "" {
			o.URL = "http://127.0.0.1:11434"
		}
	case o.Kind != OpenAI:
		return nil, fmt.Errorf("embedder of kind %q: there are %s and %s", o.Kind, OpenAI, Ollama)
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("embedder's url %q: give one such as https://api.openai.com/v1", o.URL)
	}
	if o.Model == "" || o.Dimensions < 0 {
		return nil, fmt.Errorf("embedder at %s: model %q, dimensions %d; name the model", o.URL, o.Model, o.Dimensions)
	}
	e.url = strings.TrimSuffix(o.URL, "/") + path
	return e, nil
}

// Fingerprint names what the vectors depend on. The key is not among it.
func (e *Embedder) Fingerprint() string {
	return fmt.Sprintf("%s %s %s %d %q %q", e.o.Kind, e.url, e.o.Model, e.o.Dimensions, e.o.CardPrefix, e.o.QueryPrefix)
}

// EmbedCards returns the vector of each text. Passing faults (429, 5xx, cut
// connections) are tried again, two times at most.
func (e *Embedder) EmbedCards(ctx context.Context, texts []string) ([][]float32, error) {
	input := make([]string, len(texts))
	for i, t := range texts {
		input[i] = clip(e.o.CardPrefix + t)
	}
	for n := 1; ; n++ {
		vecs, err := e.ask(ctx, cardsTimeout, input)
		var f *fault
		if err == nil || n == tries || !errors.As(err, &f) || !f.passing {
			return vecs, err
		}
		wait := time.Duration(rand.Int64N(int64(time.Second) << n))
		if pause(ctx, min(max(f.after, wait), maxPause)) != nil {
			return nil, err // says more than that the time is over
		}
	}
}

// EmbedQuery returns the vector of a query, in one try and a short time.
func (e *Embedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vecs, err := e.ask(ctx, queryTimeout, []string{clip(e.o.QueryPrefix + text)})
	if err != nil {
		return nil, err
	}
	return vecs[0], nil
}

// clip cuts a text to maxInput bytes, between characters. An empty one, which
// endpoints refuse, becomes a space.
func clip(s string) string {
	if s == "" {
		return " "
	}
	if len(s) <= maxInput {
		return s
	}
	end := maxInput
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// pause waits; the error is ctx's.
func pause(ctx context.Context, d time.Duration) error {
	within, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-within.Done()
	return ctx.Err()
}

// fault is a refused or failed request.
type fault struct {
	url, what string
	passing   bool
	after     time.Duration // the endpoint asks to wait
}

func (f *fault) Error() string { return fmt.Sprintf("embedder at %s: %s", f.url, f.what) }

type request struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Dimensions int      `json:"dimensions,omitempty"`
	Format     string   `json:"encoding_format,omitempty"`
}

// reply has the fields of both kinds.
type reply struct {
	Data []struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	} `json:"data"`
	Embeddings [][]float32 `json:"embeddings"`
}

// ask sends one request.
func (e *Embedder) ask(ctx context.Context, limit time.Duration, input []string) ([][]float32, error) {
	asked := request{Model: e.o.Model, Input: input, Dimensions: e.o.Dimensions}
	if e.o.Kind == OpenAI {
		asked.Format = "float"
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(within, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if e.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+e.o.Key)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// A refused connection is not retried: it will be refused in a second, too.
		return nil, &fault{url: e.url, what: err.Error(), passing: !errors.Is(err, syscall.ECONNREFUSED)}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return nil, &fault{url: e.url, what: err.Error(), passing: ctx.Err() == nil}
	case resp.StatusCode != http.StatusOK:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // not a number: no wish
		return nil, &fault{url: e.url, what: refusal(resp.Status, data),
			passing: resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500, after: time.Duration(max(0, seconds)) * time.Second}
	case len(data) > maxReply:
		return nil, &fault{url: e.url, what: fmt.Sprintf("more than %d bytes of reply", maxReply)}
	}
	vecs, err := vectors(data, len(input))
	if err != nil {
		return nil, &fault{url: e.url, what: err.Error()}
	}
	return vecs, nil
}

// refusal is the status and the endpoint's own words, as far as they are text
// and short.
func refusal(status string, data []byte) string {
	const most = 200
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	var inner struct {
		Message string `json:"message"`
	}
	said := ""
	if json.Unmarshal(data, &e) == nil && json.Unmarshal(e.Error, &inner) != nil {
		_ = json.Unmarshal(e.Error, &said) // Ollama's is a plain text; anything else is left out
	}
	if inner.Message != "" {
		said = inner.Message
	}
	if said = strings.Join(strings.Fields(said), " "); said == "" {
		return status
	}
	if len(said) > most {
		said = strings.ToValidUTF8(said[:most], "") + "…"
	}
	return status + ": " + said
}

var nullNumber = regexp.MustCompile(`[\[,]\s*null\s*[,\]]|"embedding"\s*:\s*null`)

// vectors reads a reply to n texts.
func vectors(data []byte, n int) ([][]float32, error) {
	var r reply
	if nullNumber.Match(data) { // which would be read as 0
		return nil, errors.New("reply has null in an embedding")
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("reply is not an embedding endpoint's: %w", err)
	}
	out := r.Embeddings
	if len(r.Data) > 0 {
		out = make([][]float32, n)
		for _, d := range r.Data {
			if d.Index < 0 || d.Index >= n || out[d.Index] != nil {
				return nil, fmt.Errorf("reply has an embedding for text %d, %d were sent", d.Index, n)
			}
			out[d.Index] = d.Embedding
		}
	}
	if len(out) != n {
		return nil, fmt.Errorf("%d embeddings for %d texts", len(out), n)
	}
	for i, v := range out {
		if len(v) == 0 || len(v) != len(out[0]) {
			return nil, fmt.Errorf("embedding %d has %d dimensions, the first %d", i, len(v), len(out[0]))
		}
		if !slices.ContainsFunc(v, func(f float32) bool { return f != 0 }) {
			return nil, fmt.Errorf("embedding %d is all zeros; is that an embedding model?", i)
		}
	}
	return out, nil
}

// Credentials returns the endpoint's secrets: its key, "" for none, and its address,
// which may hold a password.
func (e *Embedder) Credentials() (key, address string) { return e.o.Key, e.o.URL }
