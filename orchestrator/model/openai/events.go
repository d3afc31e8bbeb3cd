package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"anamnesis/orchestrator/model"
)

var (
	errCut     = errors.New("the stream ended without a finish reason")
	errHTML    = errors.New("the endpoint answered with a web page; is the base URL right?")
	errNoChat  = errors.New("the endpoint's answer is not a chat completion; check the base URL")
	errTooLong = fmt.Errorf("the reply is longer than %d MiB", MaxReplyBytes>>20)
)

// doneMark ends a stream.
const doneMark = "[DONE]"

// maxLeadingSpace bounds the white space before a reply. Some gateways send it to keep the
// connection open while the model reads.
const maxLeadingSpace = 1 << 20

// events reads a response's body and returns a stream that go-openai cannot misread: one line
// `data: {…}` for each event and nothing else. Comments, names, ids and empty lines are
// dropped; a web page, an error in the stream, broken JSON and exceeded limits become a
// *model.Fault from Read; a body that is one whole chat completion becomes a stream of one
// event.
//
// It also keeps what go-openai's types have no field for, so the goroutine that calls
// takeReasoning must be the one that reads it.
type events struct {
	body io.ReadCloser
	r    *bufio.Reader

	begun     bool
	out       []byte   // not read yet
	event     []byte   // data lines of the event being read
	read      int      // bytes taken from the body
	err       error    // once set, Read returns it after out
	failed    bool     // err is the provider's own report of a failure
	reasoning []string // the `reasoning` of each event read and not yet taken
}

func newEvents(body io.ReadCloser, clock *clock) *events {
	return &events{body: body, r: bufio.NewReaderSize(&pulse{body, clock}, 64<<10)}
}

// pulse reports every byte to the clock, including comments: gateways send them to show that
// the model is still working.
type pulse struct {
	r     io.Reader
	clock *clock
}

func (p *pulse) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if n > 0 {
		p.clock.progress()
	}
	return n, err
}

// Close implements io.Closer.
func (e *events) Close() error { return e.body.Close() }

// Read implements io.Reader. It returns at most one event at a time, so that no event waits
// for the next.
func (e *events) Read(p []byte) (int, error) {
	for len(e.out) == 0 && e.err == nil {
		if !e.begun {
			e.err = e.begin()
			continue
		}
		e.err = e.next()
	}
	if len(e.out) == 0 {
		return 0, e.err
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// takeReasoning returns the `reasoning` of the earliest event not yet taken.
func (e *events) takeReasoning() string {
	if len(e.reasoning) == 0 {
		return ""
	}
	s := e.reasoning[0]
	e.reasoning = e.reasoning[1:]
	return s
}

// begin examines the first byte that is not white space. It is more reliable than the content
// type, which servers and proxies get wrong.
func (e *events) begin() error {
	e.begun = true
	if bom, err := e.r.Peek(3); err == nil && string(bom) == "\ufeff" {
		_, _ = e.r.Discard(3)
	}
	for {
		b, err := e.r.ReadByte()
		if err != nil {
			return cutOr(err)
		}
		if e.read++; e.read > maxLeadingSpace {
			return &model.Fault{Kind: model.FaultProtocol, Err: errNoChat}
		}
		switch b {
		case ' ', '\t', '\r', '\n':
			continue
		case '<':
			return &model.Fault{Kind: model.FaultProtocol, Err: errHTML}
		}
		if err := e.r.UnreadByte(); err != nil {
			return fmt.Errorf("read the reply: %w", err)
		}
		if b == '{' || b == '[' {
			return e.whole()
		}
		return nil
	}
}

// next reads one line and emits the event it completes. It ignores lines that are not data. An
// event ends with an empty line, but one whose first line is complete is emitted at once: some
// servers end events with one newline instead of two. Only the first line is tried, so that an
// event of a million lines costs no more than its length.
func (e *events) next() error {
	line, err := e.line()
	if err != nil && len(line) == 0 {
		if errors.Is(err, io.EOF) && len(e.event) > 0 {
			if e.complete() {
				return e.flush()
			}
			return &model.Fault{Kind: model.FaultCut, Retryable: true, Err: errors.New("the stream ended inside an event")}
		}
		return err
	}
	if len(line) == 0 { // the end of an event
		switch {
		case len(e.event) == 0:
			return nil
		case e.complete():
			return e.flush()
		}
		return badEvent(e.event)
	}
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return nil
	}
	first := len(e.event) == 0
	if !first {
		e.event = append(e.event, '\n')
	}
	e.event = append(e.event, bytes.TrimSpace(data)...)
	if len(e.event) > MaxEventBytes {
		return &model.Fault{Kind: model.FaultProtocol, Err: fmt.Errorf("an event of the stream is longer than %d MiB", MaxEventBytes>>20)}
	}
	if first && e.complete() {
		return e.flush()
	}
	return nil
}

// complete reports whether the event read so far is whole.
func (e *events) complete() bool {
	return string(e.event) == doneMark || json.Valid(e.event)
}

// flush emits the event read.
func (e *events) flush() error {
	event := e.event
	e.event = nil
	return e.emit(event)
}

// line reads one line without its end, within the limits.
func (e *events) line() ([]byte, error) {
	var line []byte
	for {
		part, err := e.r.ReadSlice('\n')
		e.read += len(part)
		line = append(line, part...)
		switch {
		case e.read > MaxReplyBytes:
			return nil, &model.Fault{Kind: model.FaultProtocol, Err: errTooLong}
		case len(line) > MaxEventBytes:
			return nil, &model.Fault{Kind: model.FaultProtocol, Err: fmt.Errorf("a line of the stream is longer than %d MiB", MaxEventBytes>>20)}
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		line = bytes.TrimRight(line, "\r\n")
		if err != nil {
			return line, cutOr(err)
		}
		return line, nil
	}
}

// sideData is what this package itself reads of an event.
type sideData struct {
	Error   json.RawMessage `json:"error"`
	Object  string          `json:"object"`
	Choices []struct {
		Delta   sideDelta `json:"delta"`
		Message sideDelta `json:"message"`
	} `json:"choices"`
}

type sideDelta struct {
	Reasoning json.RawMessage `json:"reasoning"`
}

// emit passes one complete event on.
func (e *events) emit(event []byte) error {
	if string(event) == doneMark {
		e.out = append(e.out, "data: "+doneMark+"\n\n"...)
		return nil
	}
	var side sideData
	// go-openai reports a field of an unexpected type.
	_ = json.Unmarshal(event, &side)
	if p := parseProblem(event); p.found && (present(side.Error) || side.Object == "error" || len(side.Choices) == 0 && p.bare) {
		e.failed = true
		return p.fault()
	}
	thought := ""
	if len(side.Choices) > 0 {
		_ = json.Unmarshal(side.Choices[0].Delta.Reasoning, &thought)
	}
	e.reasoning = append(e.reasoning, thought)
	var compact bytes.Buffer
	if err := json.Compact(&compact, event); err != nil {
		return badEvent(event)
	}
	// The space keeps go-openai from taking {"error":null,…} for an error.
	e.out = append(e.out, "data: "...)
	if c := compact.Bytes(); c[0] == '{' {
		e.out = append(e.out, "{ "...)
		e.out = append(e.out, c[1:]...)
	} else {
		return badEvent(event)
	}
	e.out = append(e.out, "\n\n"...)
	return nil
}

// whole reads a body that is one JSON value: an error under status 200, or
// the chat completion of a server that does not stream.
func (e *events) whole() error {
	body, err := io.ReadAll(io.LimitReader(e.r, MaxEventBytes+1))
	if err != nil {
		return cutOr(err)
	}
	if len(body) > MaxEventBytes {
		return &model.Fault{Kind: model.FaultProtocol, Err: fmt.Errorf("the reply is longer than %d MiB", MaxEventBytes>>20)}
	}
	var reply struct {
		ID      json.RawMessage `json:"id,omitempty"`
		Model   json.RawMessage `json:"model,omitempty"`
		Usage   json.RawMessage `json:"usage,omitempty"`
		Choices []struct {
			Message json.RawMessage `json:"message,omitempty"`
			Delta   json.RawMessage `json:"delta,omitempty"`
			Finish  json.RawMessage `json:"finish_reason,omitempty"`
		} `json:"choices"`
	}
	var syntax *json.SyntaxError
	err = json.Unmarshal(body, &reply)
	if errors.As(err, &syntax) && int(syntax.Offset) >= len(bytes.TrimSpace(body)) {
		return &model.Fault{Kind: model.FaultCut, Retryable: true, Err: errors.New("the reply ended inside its JSON")}
	}
	if p := parseProblem(body); p.found && len(reply.Choices) == 0 {
		e.failed = true
		return p.fault()
	}
	if err != nil || len(reply.Choices) == 0 || len(reply.Choices[0].Message) == 0 {
		return &model.Fault{Kind: model.FaultProtocol, Err: errNoChat}
	}
	reply.Choices = reply.Choices[:1]
	reply.Choices[0].Delta, reply.Choices[0].Message = reply.Choices[0].Message, nil
	event, err := json.Marshal(reply)
	if err != nil {
		return fmt.Errorf("read the reply: %w", err)
	}
	if err := e.emit(event); err != nil {
		return err
	}
	return e.emit([]byte(doneMark))
}

func present(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null" && string(raw) != "{}" && string(raw) != `""`
}

func badEvent(event []byte) error {
	return &model.Fault{Kind: model.FaultProtocol, Retryable: true, Err: fmt.Errorf("an event of the stream is not a JSON object: %s", excerpt(event))}
}

// cutOr returns the fault for a body that could not be read further. A clean end stays io.EOF:
// whether it is a cut depends on what came before.
func cutOr(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return &model.Fault{Kind: model.FaultCut, Retryable: true, Err: fmt.Errorf("the stream broke: %w", err)}
}
