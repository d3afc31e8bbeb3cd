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
	errCut    = errors.New("the stream ended without a finish reason")
	errHTML   = errors.New("the endpoint answered with a web page; is the base URL right?")
	errNoChat = errors.New("the endpoint's answer is not a chat completion; check the base URL")
)

const doneMark = "[DONE]"

// maxLeadingSpace bounds the white space before a reply. Some gateways send it to keep the
// connection open while the model reads.
const maxLeadingSpace = 1 << 20

// events reads a response's body and is read by go-openai as the body of a well-formed stream: one line of data for
// each event, the JSON of one object. Comments, names, ids and empty lines are dropped; a web page, an error in the
// stream, broken JSON and exceeded limits become a *model.Fault; a body that is one whole chat completion is one event.
type events struct {
	r    *bufio.Reader
	body io.Closer
	out  []byte // what Read still has to return

	begun  bool
	ready  []byte // the next event
	event  []byte // data lines of the event being read
	read   int    // bytes taken from the body
	err    error  // once set, next returns it after ready
	failed bool   // err is the provider's own report of a failure
	done   bool   // the body said that it ends here
}

func newEvents(body io.ReadCloser, clock *clock) *events {
	return &events{r: bufio.NewReaderSize(&pulse{body, clock}, 64<<10), body: body}
}

func (e *events) Close() error { return e.body.Close() }

// Read returns the next event as a line. The library takes a line that begins with the key error for a failure,
// whatever its value is; a blank before the key prevents that.
func (e *events) Read(p []byte) (int, error) {
	if len(e.out) == 0 {
		event, err := e.next()
		if err != nil {
			return 0, err
		}
		var line bytes.Buffer
		if err := json.Compact(&line, event); err != nil {
			return 0, badEvent(event)
		}
		e.out = append(append(append(e.out, "data: { "...), line.Bytes()[1:]...), '\n')
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
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

// next returns the next event. The end of the stream is io.EOF.
func (e *events) next() ([]byte, error) {
	for e.ready == nil && e.err == nil {
		if !e.begun {
			e.err = e.begin()
			continue
		}
		e.err = e.readLine()
	}
	if event := e.ready; event != nil {
		e.ready = nil
		return event, nil
	}
	return nil, e.err
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

// readLine reads one line and emits the event it completes. It ignores lines that are not data. An
// event ends with an empty line, but one whose first line is complete is emitted at once: some
// servers end events with one newline instead of two. Only the first line is tried, so that an
// event of a million lines costs no more than its length.
func (e *events) readLine() error {
	line, err := e.line()
	if err != nil && len(line) == 0 {
		if errors.Is(err, io.EOF) && len(e.event) > 0 {
			if e.complete() {
				return e.flush()
			}
			return &model.Fault{Kind: model.FaultCut, Retryable: true,
				Err: errors.New("the stream ended inside an event")}
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
		return tooLong("an event of the stream", MaxEventBytes)
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
			return nil, tooLong("the reply", MaxReplyBytes)
		case len(line) > MaxEventBytes:
			return nil, tooLong("a line of the stream", MaxEventBytes)
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

func (e *events) emit(event []byte) error {
	if string(event) == doneMark {
		e.done = true
		return io.EOF
	}
	var side struct {
		Error, Object, Choices json.RawMessage
	}
	if json.Unmarshal(event, &side) != nil || event[0] != '{' {
		return badEvent(event)
	}
	bare := !present(side.Choices) || string(side.Choices) == "[]"
	if p := parseProblem(event); p.found && (present(side.Error) || text(side.Object) == "error" || bare && p.bare) {
		e.failed = true
		return p.fault(nil)
	}
	e.ready = event
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
		return tooLong("the reply", MaxEventBytes)
	}
	body = bytes.TrimSpace(body)
	var syntax *json.SyntaxError
	var value any
	if err := json.Unmarshal(body, &value); errors.As(err, &syntax) && int(syntax.Offset) >= len(body) {
		return &model.Fault{Kind: model.FaultCut, Retryable: true, Err: errors.New("the reply ended inside its JSON")}
	} else if err != nil {
		return &model.Fault{Kind: model.FaultProtocol, Err: errNoChat}
	}
	if p := parseProblem(body); p.found && len(readChunk(body).choices) == 0 {
		e.failed = true
		return p.fault(nil)
	}
	if c := readChunk(body).choices; len(c) == 0 || c[0].delta == nil {
		return &model.Fault{Kind: model.FaultProtocol, Err: errNoChat}
	}
	e.ready, e.done = body, true
	return io.EOF
}

func present(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null" && string(raw) != "{}" && string(raw) != `""`
}

func badEvent(event []byte) error {
	err := fmt.Errorf("an event of the stream is not a JSON object: %s", excerpt(event))
	return &model.Fault{Kind: model.FaultProtocol, Retryable: true, Err: err}
}

func tooLong(what string, limit int) error {
	err := fmt.Errorf("%s is longer than %d MiB", what, limit>>20)
	return &model.Fault{Kind: model.FaultProtocol, Err: err}
}

// cutOr returns the fault for a body that could not be read further. A clean end stays io.EOF:
// whether it is a cut depends on what came before.
func cutOr(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return &model.Fault{Kind: model.FaultCut, Retryable: true, Err: fmt.Errorf("the stream broke: %w", err)}
}
