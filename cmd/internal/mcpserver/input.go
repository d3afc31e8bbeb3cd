package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxLineBytes is the size of a message that is read.
const maxLineBytes = 16 << 20

// answerTime is how long the answers to what was asked are waited for when the input has
// ended. Of a request that was cancelled there is none.
const answerTime = 5 * time.Second

// lines is the client's side of the server: one message a line. The library ends a
// connection at the first line that it cannot decode. Read passes on only lines that are
// messages; the others are answered here.
type lines struct {
	in    *bufio.Reader
	close func() error
	line  []byte // what of the present line was not passed on yet

	mu       sync.Mutex
	out      io.WriteCloser
	asked    int           // requests that are not answered
	answered chan struct{} // one was, after the input had ended
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.line) == 0 {
		line, long, err := l.next()
		if len(bytes.TrimSpace(line)) == 0 && !long {
			if err != nil {
				l.finish()
				return 0, err
			}
			continue
		}
		if refusal := refuse(line, long); refusal != nil {
			if err := json.NewEncoder(l).Encode(refusal); err != nil {
				return 0, err
			}
			continue
		}
		l.count(line, 1, true)
		l.line = append(bytes.TrimSpace(line), '\n')
	}
	n := copy(p, l.line)
	l.line = l.line[n:]
	return n, nil
}

// next reads a line; of one that is too long only the beginning is returned.
func (l *lines) next() (line []byte, long bool, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLineBytes; !long {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	n, err := l.out.Write(p)
	l.mu.Unlock()
	l.count(p, -1, false)
	return n, err
}

// count notes a request that was read, or an answer that was written.
func (l *lines) count(line []byte, n int, request bool) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
	}
	if json.Unmarshal(line, &m) != nil || len(m.ID) == 0 || string(m.ID) == "null" || (m.Method != nil) != request {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked += n
	if l.asked <= 0 && l.answered != nil {
		close(l.answered)
		l.answered = nil
	}
}

// finish waits for the answers: the library gives none after the input's end.
func (l *lines) finish() {
	l.mu.Lock()
	done := make(chan struct{})
	if l.answered = done; l.asked <= 0 {
		close(done)
		l.answered = nil
	}
	l.mu.Unlock()
	select {
	case <-done:
	case <-time.After(answerTime):
	}
}

func (l *lines) Close() error { return errors.Join(l.close(), l.out.Close()) }

// refusal is the answer to a line that is not a message.
type refusal struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   jsonrpc.Error   `json:"error"`
}

// refuse returns the answer to a line that is not a message; nil for a message.
func refuse(line []byte, long bool) *refusal {
	r := &refusal{Version: "2.0", ID: json.RawMessage("null")}
	r.Error.Code = jsonrpc.CodeInvalidRequest
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	switch _, err := jsonrpc.DecodeMessage(line); {
	case long:
		r.Error.Message = fmt.Sprintf("message of more than %d bytes: send less", maxLineBytes)
	case !json.Valid(line):
		r.Error.Code, r.Error.Message = jsonrpc.CodeParseError,
			"line that is not JSON: send one JSON-RPC message a line"
	case bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")):
		r.Error.Message = "batch of messages: send one message a line"
	case err != nil:
		if json.Unmarshal(line, &m) == nil && len(m.ID) > 0 && strings.ContainsRune(`"-0123456789`, rune(m.ID[0])) {
			r.ID = m.ID
		}
		r.Error.Message = fmt.Sprintf("line that is not a JSON-RPC 2.0 message: %v", err)
	default:
		return nil
	}
	return r
}

// typeNames say what an argument must be.
var typeNames = map[string]string{"integer": "a whole number", "string": "a text in quotes", "boolean": "true or false",
	"array": "a list of texts"}

// arguments decodes the arguments of a call. An error names the argument and what it must
// be. null counts as left out.
func arguments[In any](schema *jsonschema.Schema, raw json.RawMessage) (in In, err error) {
	given := map[string]any{}
	if len(raw) > 0 && json.Unmarshal(raw, &given) != nil {
		return in, errors.New("the arguments are not a JSON object")
	}
	maps.DeleteFunc(given, func(_ string, value any) bool { return value == nil })
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if schema.Properties[name] == nil {
			return in, fmt.Errorf("unknown argument %q; known are %s", name,
				strings.Join(slices.Sorted(maps.Keys(schema.Properties)), ", "))
		}
	}
	must := func(name string) string {
		p := schema.Properties[name]
		what := typeNames[p.Type]
		if p.Minimum != nil {
			what += fmt.Sprintf(" of at least %v", *p.Minimum)
		}
		return fmt.Sprintf("it must be %s (%s)", what, p.Description)
	}
	for _, name := range schema.Required {
		if given[name] == nil {
			return in, fmt.Errorf("argument %q is missing: %s", name, must(name))
		}
	}
	for name, value := range given {
		data, err := json.Marshal(map[string]any{name: value})
		if err != nil {
			return in, err
		}
		if json.Unmarshal(data, &in) != nil {
			return in, fmt.Errorf("argument %q is %.60s: %s", name,
				bytes.TrimSuffix(data[len(name)+4:], []byte("}")), must(name))
		}
	}
	return in, nil
}
