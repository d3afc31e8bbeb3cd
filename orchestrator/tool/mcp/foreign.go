package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// maxMessageBytes bounds one message of a server.
const maxMessageBytes = 16 << 20

// errMessageTooLong ends the connection to a server whose message is longer
// than maxMessageBytes.
var errMessageTooLong = errors.New("the server sent a message of more than 16 MiB")

// messages reads the lines of a server's output that are messages. Many programs print others there, which the
// library would take for a broken connection.
type messages struct {
	io.Closer
	lines *bufio.Scanner
	stray func(line []byte) // receives the others
	ready []byte
}

func newMessages(from io.ReadCloser, stray func(line []byte)) *messages {
	m := &messages{Closer: from, lines: bufio.NewScanner(from), stray: stray}
	m.lines.Buffer(nil, maxMessageBytes)
	return m
}

func (m *messages) Read(p []byte) (int, error) {
	for len(m.ready) == 0 {
		if !m.lines.Scan() {
			err := m.lines.Err()
			if errors.Is(err, bufio.ErrTooLong) {
				err = errMessageTooLong
			}
			return 0, cmp.Or(err, io.EOF)
		}
		if line := m.lines.Bytes(); isMessage(line) {
			m.ready = slices.Concat(line, []byte("\n"))
		} else {
			m.stray(line)
		}
	}
	n := copy(p, m.ready)
	m.ready = m.ready[n:]
	return n, nil
}

// isMessage reports whether a line may be a message, or several: an object or an array.
func isMessage(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) > 0 && (line[0] == '{' || line[0] == '[') && json.Valid(line)
}

// maxRedirects bounds the redirects of one request.
const maxRedirects = 5

// sameOrigin lets a request be redirected within its host only: its content, including the
// configured headers, is for the server that a user named. https instead of http is allowed.
func sameOrigin(to *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case to.URL.Host != from.Host || to.URL.Scheme != from.Scheme && to.URL.Scheme != "https":
		return &refusal{fmt.Sprintf("it redirects to %s://%s, which is not followed; if that is the server, configure "+
			"that address", to.URL.Scheme, to.URL.Host)}
	case len(via) > maxRedirects:
		return &refusal{fmt.Sprintf("more than %d redirects", maxRedirects)}
	}
	return nil
}

// refusal is a redirect that is not followed, or a login that the server wants: it did answer.
type refusal struct{ what string }

func (e *refusal) Error() string { return e.what }

// carrier sends a server's HTTP requests with its headers, and bounds the answers that are one message.
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
	if err == nil && strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		res.Body = http.MaxBytesReader(nil, res.Body, maxMessageBytes)
	}
	return res, err
}
