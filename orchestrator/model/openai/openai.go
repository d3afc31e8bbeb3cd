// Package openai asks any endpoint with OpenAI's chat completions, through go-openai, as a model.Model. Replies are
// read field by field (chunk.go), because endpoints differ in the types of most fields; what is unknown is
// kept for the endpoint it came from (extra.go).
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gopenai "github.com/sashabaranov/go-openai"

	"anamnesis/orchestrator/model"
)

// DefaultBaseURL is the endpoint used where Options name none.
const DefaultBaseURL = "https://api.openai.com/v1"

// The limits of one request. The time limits are defaults of Options.
const (
	// DefaultFirstByteTimeout bounds the wait for the reply's first byte. It
	// is long because a local server reads the whole prompt before it.
	DefaultFirstByteTimeout = 5 * time.Minute
	// DefaultIdleTimeout bounds the silence between two reads of a reply.
	DefaultIdleTimeout = 2 * time.Minute
	// DefaultTotalTimeout bounds a whole request.
	DefaultTotalTimeout = 30 * time.Minute
	// TrailerTimeout bounds the wait for the usage chunk, and for the end of the stream, after
	// the finish reason. The reply counts without them.
	TrailerTimeout = 5 * time.Second
	// MaxReplyBytes bounds what is read of one reply, as it is on the wire.
	MaxReplyBytes = 64 << 20
	// MaxEventBytes bounds one event of a stream.
	MaxEventBytes = 8 << 20
	// MaxErrorBodyBytes bounds what is read of an error response.
	MaxErrorBodyBytes = 64 << 10
	// MaxIDBytes bounds the id of a call; a longer one is replaced.
	MaxIDBytes = 256
)

// ErrOptions is in the chain of every error of New: the configuration is wrong, and nothing
// was sent.
var ErrOptions = errors.New("invalid model configuration")

// Options select the model and its endpoint.
type Options struct {
	// BaseURL is the API's root, such as https://api.openai.com/v1; empty
	// means DefaultBaseURL. A trailing /chat/completions is cut off.
	BaseURL string
	// Key is sent as a bearer token; empty sends none. It never occurs in
	// the text of an error.
	Key string
	// Model is the model's name as the endpoint knows it. Required.
	Model string
	// HTTPClient makes the connections; nil means a default one. Its Timeout, if any, applies
	// on top of the limits below.
	HTTPClient *http.Client
	// Images sets whether the images of tool results are sent.
	Images Images
	// Headers are sent with each request.
	Headers map[string]string
	// Body are further fields of each request.
	Body map[string]json.RawMessage
	// NewKey returns the key, before the first request and again when it is refused. Nil: Key is the
	// only one.
	NewKey func(context.Context) (string, error)

	FirstByteTimeout time.Duration // 0: DefaultFirstByteTimeout
	IdleTimeout      time.Duration // 0: DefaultIdleTimeout
	TotalTimeout     time.Duration // 0: DefaultTotalTimeout
}

// Client is one model behind one endpoint. It is safe for concurrent use.
type Client struct {
	o    Options
	http *http.Client
	// trailer is TrailerTimeout; tests shorten it.
	trailer time.Duration

	mu    sync.Mutex
	mends mends  // what this endpoint's refusals have shown
	key   string // the one in use
	// answered: it has given a reply, so that its address is right.
	answered atomic.Bool
	// unfinished counts its texts that were complete but for a finish reason.
	unfinished atomic.Int32
}

// New checks the options and returns a client. It sends nothing. Its errors
// are ErrOptions.
func New(o Options) (*Client, error) {
	o.Model = strings.TrimSpace(o.Model)
	if o.Model == "" {
		return nil, fmt.Errorf("%w: no model name given", ErrOptions)
	}
	o.Key = strings.TrimSpace(o.Key)
	if !sendableKey(o.Key) {
		return nil, fmt.Errorf("%w: the API key has a character that no header can carry", ErrOptions)
	}
	base, err := parseBaseURL(o.BaseURL)
	if err != nil {
		return nil, err
	}
	o.BaseURL = base.String()
	o.FirstByteTimeout = cmp.Or(o.FirstByteTimeout, DefaultFirstByteTimeout)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	o.TotalTimeout = cmp.Or(o.TotalTimeout, DefaultTotalTimeout)
	c := &Client{o: o, http: o.HTTPClient, trailer: TrailerTimeout, key: o.Key}
	if o.NewKey != nil {
		c.key = "" // the command's is newer than the environment's
	}
	if c.http == nil {
		c.http = &http.Client{}
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			c.http.Transport = t.Clone()
		}
	}
	return c, nil
}

func sendableKey(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
}

// keyFor returns the key to send. refused: the one in use no longer counts.
func (c *Client) keyFor(ctx context.Context, refused bool) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.o.NewKey == nil || c.key != "" && !refused {
		return c.key, nil
	}
	key, err := c.o.NewKey(ctx)
	if err == nil && !sendableKey(key) {
		err = errors.New("the API key has a character no header can carry")
	}
	if err != nil {
		return "", &model.Fault{Kind: model.FaultRefused, Err: fmt.Errorf("%w: %w", model.ErrNoKey, err)}
	}
	c.key = key
	return key, nil
}

// parseBaseURL never repeats its operand in an error: users paste keys into URLs.
func parseBaseURL(s string) (*url.URL, error) {
	u, err := url.Parse(cmp.Or(strings.TrimSpace(s), DefaultBaseURL))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: the base URL cannot be parsed", ErrOptions)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%w: the base URL must begin with http:// or https://", ErrOptions)
	case u.Host == "":
		return nil, fmt.Errorf("%w: the base URL names no host", ErrOptions)
	case u.User != nil:
		return nil, fmt.Errorf("%w: the base URL contains a user name; give the key on its own", ErrOptions)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%w: the base URL must have neither a query nor a fragment", ErrOptions)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.Path = strings.TrimRight(strings.TrimSuffix(u.Path, "/chat/completions"), "/")
	u.RawPath = ""
	return u, nil
}

func (c *Client) Name() string { return c.o.Model }

// BaseURL returns the endpoint in use, without a trailing slash.
func (c *Client) BaseURL() string { return c.o.BaseURL }

// Ask implements model.Model: one HTTP request, streamed. It is repeated at once only if the endpoint
// wants the history written differently: see mend.go.
func (c *Client) Ask(ctx context.Context, r model.Request, on func(model.Delta)) (model.Reply, error) {
	caller := ctx
	ctx, clock := startClock(caller, c.o, c.trailer)
	defer clock.stop()
	stream, x, err := c.exchange(ctx, r, clock)
	if err != nil {
		return model.Reply{}, c.toFault(caller, ctx, err, "")
	}
	defer stream.Close()

	a := newAssembly(on)
	for !a.over {
		event, err := stream.RecvRaw()
		if err != nil {
			// After the finish reason comes a trailer, which may be missing; an error that the
			// provider reports there counts.
			if !x.events.failed && (a.finish != "" || x.events.done && a.endsWell(&c.unfinished)) {
				break
			}
			return model.Reply{}, c.toFault(caller, ctx, err, a.text.String())
		}
		if err := a.add(readChunk(event)); err != nil {
			return model.Reply{}, c.toFault(caller, ctx, err, a.text.String())
		}
		if a.finish != "" {
			clock.trailer()
		}
	}
	c.answered.Store(true)
	reply := a.reply(r)
	reply.Origin = c.origin()
	reply.Repairs = append(x.request.repairs, reply.Repairs...)
	return reply, nil
}

// exchange sends a request, again if the endpoint's refusal says how to write it.
func (c *Client) exchange(ctx context.Context, r model.Request, clock *clock) (
	*gopenai.ChatCompletionStream, *exchange, error) {
	var learned []string
	key, keyErr := c.keyFor(ctx, false)
	renewed := false
	for {
		if keyErr != nil {
			return nil, nil, keyErr
		}
		w, err := c.request(r)
		if err != nil {
			return nil, nil, &model.Fault{Kind: model.FaultProtocol, Err: err}
		}
		w.repairs = append(w.repairs, learned...)
		x := &exchange{client: c, request: w, cap: r.MaxTokens, clock: clock}
		cfg := gopenai.DefaultConfig(key)
		cfg.BaseURL, cfg.HTTPClient = c.o.BaseURL, x
		stream, err := gopenai.NewClientWithConfig(cfg).CreateChatCompletionStream(ctx, w.ChatCompletionRequest)
		if err != nil && !x.sent { // the library itself refuses such a request
			return nil, nil, &model.Fault{Kind: model.FaultRefused, Err: err}
		}
		if err == nil {
			return stream, x, nil
		}
		f, ok := errors.AsType[*model.Fault](err)
		if c.o.NewKey != nil && !renewed && ok && f.Status == http.StatusUnauthorized {
			renewed = true
			key, keyErr = c.keyFor(ctx, true)
			continue
		}
		// Each way of writing is learned once, so that an endpoint that keeps refusing ends the loop.
		way := c.learn(err, r, w)
		if way == "" {
			return stream, x, err
		}
		learned = append(learned, way)
	}
}

// toFault turns the end of an exchange into the caller's Fault.
func (c *Client) toFault(caller, ctx context.Context, err error, partial string) error {
	f := c.explain(caller, ctx, err)
	if errors.Is(f, errHTML) {
		f.Retryable = c.answered.Load() // a gateway's page about an outage
	}
	f.Partial = partial
	f.Tries = 1
	return f
}
