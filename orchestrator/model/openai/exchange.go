package openai

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"anamnesis/orchestrator/model"
)

// exchange carries one request and its response. It is go-openai's HTTPDoer, because that library drops the
// headers of an error response, cannot send some values, and mistakes every kind of broken stream for a
// clean end.
type exchange struct {
	client  *Client
	request *written
	cap     int // of the reply's tokens; 0: none
	clock   *clock
	sent    bool    // Do was called
	events  *events // set once a response with a 2xx status has come
}

// Do sends the request. A status outside 2xx is returned as a *model.Fault; otherwise the response's body
// is an events.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	x.sent = true
	if err := x.rewrite(req); err != nil {
		return nil, &model.Fault{Kind: model.FaultProtocol, Err: err}
	}
	resp, err := x.client.http.Do(req)
	if err != nil {
		return nil, &model.Fault{Kind: model.FaultNetwork, Retryable: passing(err), Err: networkError(req, err)}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, statusFault(resp)
	}
	x.events = newEvents(resp.Body, x.clock)
	resp.Body = x.events
	return resp, nil
}

// rewrite replaces the request's body by the patched one.
func (x *exchange) rewrite(req *http.Request) error {
	plain, err := io.ReadAll(req.Body)
	if err != nil {
		return fmt.Errorf("read back the request: %w", err)
	}
	body, err := x.client.patch(plain, x.request, x.cap)
	if err != nil {
		return err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.ContentLength = int64(len(body))
	req.Header.Del("Connection") // connections are kept by default
	for name, value := range x.client.o.Headers {
		req.Header.Set(name, value)
	}
	return nil
}

// passing reports whether a request without an answer may succeed later: a server that cannot be
// reached may come back, one that speaks another protocol or cannot be trusted is another server.
func passing(err error) bool {
	return !errors.As(err, new(*tls.CertificateVerificationError)) && !errors.As(err, new(tls.RecordHeaderError)) &&
		!errors.Is(err, http.ErrSchemeMismatch)
}

// networkError returns an error without the URL, which may hold a proxy's password or a
// redirect's token.
func networkError(req *http.Request, err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fmt.Errorf("cannot reach %s: %w", req.URL.Host, err)
}

func statusFault(resp *http.Response) *model.Fault {
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxErrorBodyBytes))
	if err != nil && len(body) == 0 {
		body = []byte("(its body could not be read)")
	}
	p := parseProblem(body)
	p.status = resp.StatusCode
	f := p.fault(resp.Header)
	switch resp.Header.Get("X-Should-Retry") { // OpenAI's own clients follow it
	case "true":
		f.Retryable = f.Kind == model.FaultHTTP
	case "false":
		f.Retryable, f.RetryAfter = false, 0
	}
	return f
}

// explain returns the fault behind an error of the network or of this package's
// reader. The end of the context is checked first, since it causes many other errors.
func (c *Client) explain(caller, ctx context.Context, err error) *model.Fault {
	if end := caller.Err(); end != nil {
		if cause := context.Cause(caller); !errors.Is(cause, end) {
			end = fmt.Errorf("%w: %w", end, cause)
		}
		return &model.Fault{Kind: model.FaultCanceled, Err: end}
	}
	if late, ok := errors.AsType[*timeoutError](context.Cause(ctx)); ok {
		return &model.Fault{Kind: model.FaultTimeout, Retryable: true, Err: late}
	}
	if f, ok := errors.AsType[*model.Fault](err); ok {
		known := *f
		known.Err = c.scrub(f.Err)
		if t := (interface{ Timeout() bool })(nil); errors.As(f.Err, &t) && t.Timeout() {
			known.Kind = model.FaultTimeout
		}
		return &known
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &model.Fault{Kind: model.FaultCut, Retryable: true, Err: errCut}
	}
	return &model.Fault{Kind: model.FaultProtocol, Err: c.scrub(err)}
}
