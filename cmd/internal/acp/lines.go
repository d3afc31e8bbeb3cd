package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	sdk "github.com/coder/acp-go-sdk"
)

// The protocol's codes for what is no request.
const (
	parseError     = -32700
	invalidRequest = -32600
)

const (
	// maxMessageBytes is the size of a message to the agent. Its library ends at a line of 10 MiB.
	maxMessageBytes = 10_000_000
	// maxReadBytes is the size of a message that the proxy reads; larger ones are only forwarded.
	maxReadBytes = 64 << 20
	// idBytes is how far into a message that is too large its id is searched.
	idBytes = 64 << 10
)

// readLine reads a line, or the next part of one that has more than so many bytes: whole reports that the
// line ends. It uses the memory of line.
func readLine(b *bufio.Reader, line []byte, most int) (_ []byte, whole bool, err error) {
	for line = line[:0]; ; {
		part, err := b.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, true, err
		}
		if len(line) > most {
			return line, false, nil
		}
	}
}

// checked returns the messages of in, a line each. What is no message is answered on out by the
// protocol's error, and left out.
func checked(in io.Reader, out *lines) io.Reader {
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(check(in, out, w)) }()
	return r
}

func check(in io.Reader, out *lines, messages io.Writer) error {
	b, line := bufio.NewReaderSize(in, 1<<16), []byte(nil)
	for {
		part, whole, err := readLine(b, line, maxMessageBytes)
		line = part
		if size := len(line); size > maxMessageBytes {
			id := idIn(line[:idBytes])
			for ; !whole && err == nil; size += len(line) {
				line, whole, err = readLine(b, line, maxMessageBytes)
			}
			answerError(out, id, invalidRequest,
				fmt.Sprintf("the message has %d bytes, more than the limit of %d", size, maxMessageBytes))
		} else if text := bytes.TrimSpace(line); len(text) > 0 {
			message, code, why := valid(text)
			if why != "" {
				answerError(out, idIn(text), code, why)
			} else if _, err := messages.Write(append(message, '\n')); err != nil {
				return err
			}
		}
		if err != nil {
			return err // io.EOF too
		}
	}
}

// valid returns a message as the library reads it, or why it cannot.
func valid(text []byte) (message []byte, code int, why string) {
	var m struct {
		JSONRPC string
		ID      json.RawMessage   `json:"id"`
		Method  *string           `json:"method"`
		Error   *sdk.RequestError `json:"error"`
	}
	err := json.Unmarshal(text, &m)
	id := idIn(text)
	switch {
	case !json.Valid(text):
		return nil, parseError, fmt.Sprintf("the line is not JSON: %v", err)
	case text[0] != '{':
		return nil, invalidRequest, "the line is not one object: batches are not supported"
	case m.Method == nil && string(id) != "null" && err != nil: // a response: the request must not wait for ever
		return marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": sdk.NewInternalError("malformed response")}),
			0, ""
	case err != nil:
		return nil, invalidRequest, fmt.Sprintf("the message is not a request: %v", err)
	case m.Method == nil && string(id) == "null":
		return nil, invalidRequest, "the message has neither a method nor an id"
	case len(m.ID) > 0 && m.ID[0] != '"' && (m.ID[0] == '{' || m.ID[0] == '[' || m.ID[0] == 't' || m.ID[0] == 'f'):
		return nil, invalidRequest, "the id is neither a string nor a number"
	}
	return text, 0, ""
}

// idIn returns the id of a message, of which only the beginning may be there; null if it has none.
func idIn(text []byte) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return json.RawMessage("null")
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			break
		}
		if name == "id" && (value[0] == '"' || value[0] == '-' || value[0] >= '0' && value[0] <= '9') {
			return value
		}
	}
	return json.RawMessage("null")
}

// answerError answers a message. If the other side does not read any more, its input ends soon, too.
func answerError(out *lines, id json.RawMessage, code int, why string) {
	_ = out.send(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": why}})
}

// each visits the lines of a stream. Parts of a line that is too long to be read are passed on to
// forward, while no other line is written.
func each(r io.Reader, forward *lines, visit func(line []byte) error) error {
	b := bufio.NewReaderSize(r, 1<<16)
	for {
		line, whole, err := readLine(b, nil, maxReadBytes)
		switch {
		case !whole:
			if err := forward.copyLine(line, b); err != nil {
				return err
			}
		case len(line) > 0:
			if err := visit(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// copyLine writes a line whose beginning has been read.
func (l *lines) copyLine(line []byte, b *bufio.Reader) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for whole := false; ; {
		if _, err := l.w.Write(line); err != nil || whole {
			return err
		}
		var err error
		if line, whole, err = readLine(b, line, 1<<20); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
}
