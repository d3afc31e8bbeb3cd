// Package remote asks an embedding model over HTTP: any endpoint compatible with OpenAI's, which
// Ollama's is, too.
package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	openai "github.com/sashabaranov/go-openai"

	"anamnesis/knowledge_base/retrieval"
)

type Kind string

const (
	OpenAI Kind = "openai" // <url>/embeddings, as OpenAI's with <url> https://api.openai.com/v1
	Ollama Kind = "ollama" // <url>/v1/embeddings, by default at http://127.0.0.1:11434
)

const (
	cardsTimeout = time.Minute
	queryTimeout = 3 * time.Second // a search waits for it
	tries        = 3
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
	client *openai.Client
}

var _ retrieval.Embedder = (*Embedder)(nil)

// New checks the options; it asks nothing.
func New(o Options) (*Embedder, error) {
	at := o.URL
	switch {
	case o.Kind == Ollama:
		at = strings.TrimSuffix(cmp.Or(o.URL, "http://127.0.0.1:11434"), "/") + "/v1"
	case o.Kind != OpenAI:
		return nil, fmt.Errorf("embedder of kind %q: there are %s and %s", o.Kind, OpenAI, Ollama)
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("embedder's url %q: give one such as https://api.openai.com/v1", o.URL)
	}
	if o.Model == "" || o.Dimensions < 0 {
		return nil, fmt.Errorf("embedder at %s: model %q, dimensions %d; name the model", o.URL, o.Model, o.Dimensions)
	}
	c := openai.DefaultConfig(o.Key)
	c.BaseURL = strings.TrimSuffix(at, "/")
	if c.HTTPClient = o.Client; o.Client == nil {
		c.HTTPClient = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	return &Embedder{o, c.BaseURL + "/embeddings", openai.NewClientWithConfig(c)}, nil
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
		vecs, passing, err := e.ask(ctx, cardsTimeout, input)
		if err == nil || n == tries || !passing {
			return vecs, err
		}
		select {
		case <-time.After(rand.N(time.Second << n)):
		case <-ctx.Done():
			return nil, err // says more than that the time is over
		}
	}
}

// EmbedQuery returns the vector of a query, in one try and a short time.
func (e *Embedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vecs, _, err := e.ask(ctx, queryTimeout, []string{clip(e.o.QueryPrefix + text)})
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

// maxWords bounds what an error quotes of an endpoint's answer, in bytes.
const maxWords = 300

// ask sends one request. passing: the fault may be over at the next try.
func (e *Embedder) ask(ctx context.Context, limit time.Duration, input []string) (
	vecs [][]float32, passing bool, err error,
) {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reply, err := e.client.CreateEmbeddings(within, openai.EmbeddingRequest{
		Input: input, Model: openai.EmbeddingModel(e.o.Model), Dimensions: e.o.Dimensions,
		EncodingFormat: openai.EmbeddingEncodingFormatFloat,
	})
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	if err == nil {
		vecs, err = vectors(reply.Data, len(input))
	}
	if err == nil {
		return vecs, false, nil
	}
	status := 0
	if api, ok := errors.AsType[*openai.APIError](err); ok {
		status = api.HTTPStatusCode
	} else if req, ok := errors.AsType[*openai.RequestError](err); ok {
		status = req.HTTPStatusCode
	}
	// A refused connection will be refused in a second, too.
	cut := errors.As(err, new(*url.Error)) && !errors.Is(err, syscall.ECONNREFUSED)
	passing = cut || errors.Is(err, io.ErrUnexpectedEOF) || status == http.StatusTooManyRequests ||
		status >= http.StatusInternalServerError
	words := strings.Join(strings.Fields(err.Error()), " ")
	words = strings.ToValidUTF8(words[:min(len(words), maxWords)], "")
	return nil, passing, fmt.Errorf("embedder at %s: %s", e.url, words)
}

// vectors reads a reply to n texts.
func vectors(data []openai.Embedding, n int) ([][]float32, error) {
	out := make([][]float32, n)
	for _, d := range data {
		if d.Index < 0 || d.Index >= n || out[d.Index] != nil {
			return nil, fmt.Errorf("an embedding for text %d, %d were sent", d.Index, n)
		}
		out[d.Index] = d.Embedding
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
