package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxMessageBytes bounds one message of a server.
const maxMessageBytes = 16 << 20

// errMessageTooLong ends the connection to a server whose message is longer
// than maxMessageBytes.
var errMessageTooLong = errors.New("the server sent a message of more than 16 MiB")

// messages reads messages, one a line, or a single message, of a bounded size.
type messages struct {
	from  *bufio.Reader
	close io.Closer
	whole bool // the text is one message
	// stray receives lines that are not messages, which many programs print on their standard
	// output; nil: they pass.
	stray func(line []byte)
	ready []byte
	err   error
}

func newMessages(from io.ReadCloser, whole bool) *messages {
	return &messages{from: bufio.NewReader(from), close: from, whole: whole}
}

func (r *messages) Read(p []byte) (int, error) {
	for len(r.ready) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		var message []byte
		message, r.err = r.next()
		if r.stray != nil && !isMessage(message) {
			r.stray(message)
			continue
		}
		r.ready = message
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

// isMessage reports whether a line may be a message, or several: an object or an array.
func isMessage(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) > 0 && (line[0] == '{' || line[0] == '[') && json.Valid(line)
}

// next reads one message. The last one may come with an error.
func (r *messages) next() ([]byte, error) {
	if r.whole {
		data, err := io.ReadAll(io.LimitReader(r.from, maxMessageBytes+1))
		switch {
		case err != nil:
			return nil, err
		case len(data) > maxMessageBytes:
			return nil, errMessageTooLong
		}
		return data, io.EOF
	}
	var line []byte
	for {
		part, err := r.from.ReadSlice('\n')
		if len(line)+len(part) > maxMessageBytes {
			return nil, errMessageTooLong
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func (r *messages) Close() error { return r.close.Close() }

// maxRedirects bounds the redirects of one request.
const maxRedirects = 5

// sameOrigin lets a request be redirected within its host only: its content, including the
// configured headers, is for the server that a user named. https instead of http is allowed.
func sameOrigin(to *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case to.URL.Host != from.Host || to.URL.Scheme != from.Scheme && to.URL.Scheme != "https":
		return &redirectError{fmt.Sprintf("it redirects to %s://%s, which is not followed; if that is the server, configure that address", to.URL.Scheme, to.URL.Host)}
	case len(via) > maxRedirects:
		return &redirectError{fmt.Sprintf("more than %d redirects", maxRedirects)}
	}
	return nil
}

// redirectError is a redirect that is not followed: the server did answer.
type redirectError struct{ what string }

func (e *redirectError) Error() string { return e.what }

// carrier sends a server's HTTP requests with its headers, and bounds the answers.
type carrier struct {
	headers map[string]string
	through http.RoundTripper
}

func (c *carrier) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for k, v := range c.headers {
		req.Header.Set(k, v)
	}
	res, err := c.through.RoundTrip(req)
	if err != nil || res.Body == nil {
		return res, err
	}
	kind := res.Header.Get("Content-Type")
	if json := strings.HasPrefix(kind, "application/json"); json || strings.HasPrefix(kind, "text/event-stream") {
		res.Body = newMessages(res.Body, json)
		res.ContentLength = -1
		res.Header.Del("Content-Length")
	}
	return res, nil
}
