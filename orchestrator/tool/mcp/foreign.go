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

// knownContent are the kinds of content the library reads. It rejects a whole result over one
// item of another kind, so such an item is converted to text first.
const knownContent = "text image audio resource_link resource"

// rewrite returns a message in which content of unknown kinds is a text that names the kind.
// Other messages are returned unchanged.
func rewrite(line []byte) []byte {
	data := line
	var lead []byte
	if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok { // of an event stream
		lead, data = line[:len(line)-len(rest)], rest
	}
	var kinds struct {
		Result struct {
			Content []struct {
				Type string `json:"type"`
			} `json:"content"`
		} `json:"result"`
	}
	if !bytes.Contains(data, []byte(`"content"`)) || json.Unmarshal(data, &kinds) != nil {
		return line
	}
	strange := false
	for _, c := range kinds.Result.Content {
		strange = strange || !knownKind(c.Type)
	}
	if !strange {
		return line
	}
	var message, result map[string]json.RawMessage
	var content []json.RawMessage
	if json.Unmarshal(data, &message) != nil || json.Unmarshal(message["result"], &result) != nil ||
		json.Unmarshal(result["content"], &content) != nil || len(content) != len(kinds.Result.Content) {
		return line
	}
	for i, c := range kinds.Result.Content {
		if !knownKind(c.Type) {
			content[i] = mustJSON(map[string]string{"type": "text", "text": unknownKind(c.Type, len(content[i]))})
		}
	}
	result["content"] = mustJSON(content)
	message["result"] = mustJSON(result)
	out := append(bytes.Clone(lead), mustJSON(message)...)
	if bytes.HasSuffix(line, []byte("\n")) {
		out = append(out, '\n')
	}
	return out
}

func knownKind(kind string) bool {
	for k := range strings.FieldsSeq(knownContent) {
		if k == kind {
			return true
		}
	}
	return false
}

// unknownKind returns the placeholder for content of an unknown kind.
func unknownKind(kind string, size int) string {
	return fmt.Sprintf("[content of the unknown kind %.40q, %d bytes, is not shown]", kind, size)
}

// mustJSON encodes what was JSON before.
func mustJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("encode what was decoded: " + err.Error())
	}
	return data
}

// rewriting reads messages, one a line, or a single message, and returns them rewritten.
type rewriting struct {
	from  *bufio.Reader
	close io.Closer
	whole bool // the text is one message
	// stray receives lines that are not messages, which many programs print on their standard
	// output; nil: they pass.
	stray func(line []byte)
	ready []byte
	err   error
}

func newRewriting(from io.ReadCloser, whole bool) *rewriting {
	return &rewriting{from: bufio.NewReader(from), close: from, whole: whole}
}

func (r *rewriting) Read(p []byte) (int, error) {
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
		r.ready = rewrite(message)
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
func (r *rewriting) next() ([]byte, error) {
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

func (r *rewriting) Close() error { return r.close.Close() }

// maxRedirects bounds the redirects of one request.
const maxRedirects = 5

// sameOrigin lets a request be redirected within its host only: its content, including the
// configured headers, is for the server that a user named. https instead of http is allowed.
func sameOrigin(to *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case to.URL.Host != from.Host || to.URL.Scheme != from.Scheme && to.URL.Scheme != "https":
		return &refusal{fmt.Sprintf("it redirects to %s://%s, which is not followed; if that is the server, configure that address", to.URL.Scheme, to.URL.Host)}
	case len(via) > maxRedirects:
		return &refusal{fmt.Sprintf("more than %d redirects", maxRedirects)}
	}
	return nil
}

// refusal is a redirect that is not followed, or a login that the server wants: it did answer.
type refusal struct{ what string }

func (e *refusal) Error() string { return e.what }

// carrier sends a server's HTTP requests with its headers, and rewrites the answers.
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
		res.Body = newRewriting(res.Body, json)
		res.ContentLength = -1
		res.Header.Del("Content-Length")
	}
	return res, nil
}
