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
	"strconv"
	"time"

	"anamnesis/orchestrator/model"
)

// exchange carries one request and its response. It is go-openai's HTTPDoer, because that
// library drops the headers of an error response, cannot send some values, and mistakes every
// kind of broken stream for a clean end.
type exchange struct {
	client  *Client
	request model.Request
	clock   *clock
	sent    bool    // Do was called
	events  *events // set once a response with a 2xx status has come
}

// refused reports that go-openai rejected the request itself, since it knows that the model's
// endpoint does not support it.
func (x *exchange) refused() bool { return !x.sent }

// Do sends the request. A status outside 2xx is returned as a *model.Fault;
// otherwise the response's body is an events.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	x.sent = true
	if err := x.rewrite(req); err != nil {
		return nil, &model.Fault{Kind: model.FaultProtocol, Err: err}
	}
	resp, err := x.client.http.Do(req)
	if err != nil {
		var untrusted *tls.CertificateVerificationError
		return nil, &model.Fault{
			Kind:      model.FaultNetwork,
			Retryable: !errors.As(err, &untrusted),
			Err:       networkError(req, err),
		}
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
	body, err := x.client.patch(plain, x.request)
	if err != nil {
		return err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.ContentLength = int64(len(body))
	req.Header.Del("Connection") // connections are kept by default
	return nil
}

// networkError returns an error without the URL, which may hold a proxy's password or a
// redirect's token.
func networkError(req *http.Request, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("cannot reach %s: %w", req.URL.Host, err)
}

// statusFault reads an error response.
func statusFault(resp *http.Response) *model.Fault {
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxErrorBodyBytes))
	if err != nil && len(body) == 0 {
		body = []byte("(its body could not be read)")
	}
	p := parseProblem(body)
	p.status = resp.StatusCode
	f := p.fault()
	f.RetryAfter = retryAfter(resp.Header, time.Now())
	switch resp.Header.Get("X-Should-Retry") { // OpenAI's own clients follow it
	case "true":
		f.Retryable = f.Kind == model.FaultHTTP
	case "false":
		f.Retryable = false
	}
	return f
}

// retryAfter returns how long a response asks to wait, 0 if it does not say: retry-after-ms
// (OpenAI, Azure), or Retry-After in seconds or as a date (RFC 9110, section 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	// maxWish keeps a nonsensical number from overflowing a Duration.
	const maxWish = 24 * time.Hour
	seconds := func(s string, unit time.Duration) (time.Duration, bool) {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || !(n > 0) {
			return 0, false
		}
		return time.Duration(min(n*float64(unit), float64(maxWish))), true
	}
	if d, ok := seconds(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	v := h.Get("Retry-After")
	if d, ok := seconds(v, time.Second); ok {
		return d
	}
	if t, err := http.ParseTime(v); err == nil {
		return min(max(t.Sub(now), 0), maxWish)
	}
	return 0
}

// explain returns the fault behind an error of go-openai, of the network or of this package's
// reader. The end of the context is checked first, since it causes many other errors.
func (c *Client) explain(caller, ctx context.Context, err error) *model.Fault {
	if end := caller.Err(); end != nil {
		if cause := context.Cause(caller); !errors.Is(cause, end) {
			end = fmt.Errorf("%w: %w", end, cause)
		}
		return &model.Fault{Kind: model.FaultCanceled, Err: end}
	}
	var late *timeoutError
	if errors.As(context.Cause(ctx), &late) {
		return &model.Fault{Kind: model.FaultTimeout, Retryable: true, Err: late}
	}
	var f *model.Fault
	if errors.As(err, &f) {
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
