//go:build unix

package stream

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	view "anamnesis/cmd/internal/term"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
)

// exporter writes one record after the other, and what is to be said at last.
type exporter interface {
	// add is an *unreadableOp for a body that does not fit its kind; partial reports
	// whether the rest can be exported all the same.
	add(rec opstream.Record) error
	partial() bool
	end() error
}

// Export writes the stream in dir to w in a format: jsonl, openai or markdown. What
// looks like one of the secrets is redacted, with a key of this export's own. What can
// be read of a damaged stream is exported; damage is the error then. torn is set where
// the stream's end is.
func Export(w io.Writer, dir, format string, secrets []redact.Secret) (torn *opstream.Torn, err error) {
	out := bufio.NewWriter(w)
	var e exporter
	switch format {
	case "jsonl":
		e = jsonlExport{out}
	case "openai":
		e = &openaiExport{out: out, dir: dir}
	case "markdown":
		e = &markdownExport{out: out, step: -1}
	default:
		return nil, session.Usagef("--format %q: want jsonl, openai or markdown", format)
	}
	r, err := opstream.OpenReader(dir, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	key := make([]byte, redact.KeyBytes)
	rand.Read(key) // never fails
	known := redact.New(key, secrets)
	how := &redact.JSONOptions{Nested: []string{"args"}}
	var damage []error
	for rec, err := range r.Since(0) {
		if err != nil {
			damage = append(damage, err)
			continue
		}
		if rec.Seq == 1 && opensTask(rec, dir) {
			how.OwnKeys = true // another program's may hold anything
		}
		rec.Body, _, err = known.JSON(rec.Body, how)
		if err == nil {
			err = e.add(rec)
		}
		var unreadable *unreadableOp
		switch {
		case errors.As(err, &unreadable) && e.partial():
			damage = append(damage, err)
		case err != nil:
			return nil, err
		}
	}
	if err := e.end(); err != nil {
		return nil, err
	}
	if err := out.Flush(); err != nil {
		return nil, fmt.Errorf("print: %w", err)
	}
	return r.Torn(), First(damage)
}

// First returns the first of several faults, with how many more there are.
func First(damage []error) error {
	switch len(damage) {
	case 0:
		return nil
	case 1:
		return damage[0]
	}
	return fmt.Errorf("%w (and %d more)", damage[0], len(damage)-1)
}

// unreadableOp is an operation of a kind this program knows whose body it cannot
// read.
type unreadableOp struct {
	seq uint64
	err error
}

func (e *unreadableOp) Error() string   { return fmt.Sprintf("op %d: %v", e.seq, e.err) }
func (e *unreadableOp) Unwrap() []error { return []error{state.ErrStream, e.err} }

// opensTask reports whether a record begins the stream of the task whose folder
// dir is.
func opensTask(rec opstream.Record, dir string) bool {
	b, err := op.Decode(op.Kind(rec.Kind), rec.Body)
	opened, ok := b.(*op.TaskOpened)
	if err != nil || !ok {
		return false
	}
	abs, err := filepath.Abs(dir)
	return err == nil && opened.Task == filepath.Base(abs)
}

type jsonlExport struct{ out io.Writer }

func (e jsonlExport) add(rec opstream.Record) error { return Print(e.out, rec, true) }
func (e jsonlExport) partial() bool                 { return true }
func (e jsonlExport) end() error                    { return nil }

// bodyOf decodes a record; kinds this program does not know have no body.
func bodyOf(rec opstream.Record) (op.Op, error) {
	b, err := op.Decode(op.Kind(rec.Kind), rec.Body)
	if err != nil && !errors.Is(err, op.ErrUnknownKind) {
		return op.Op{}, &unreadableOp{rec.Seq, err}
	}
	return op.Op{Seq: rec.Seq, Step: rec.Step, Tok: rec.Tok, Time: rec.Time, Body: b}, nil
}

// openaiExport folds a task and shows its projection.
type openaiExport struct {
	out   io.Writer
	dir   string
	state state.State
}

func (e *openaiExport) add(rec opstream.Record) error {
	if rec.Seq == 1 && rec.Kind != string(op.KindTaskOpened) {
		return session.Usagef("%s is not the stream of a task: its first operation is %s; --format jsonl exports any stream", e.dir, rec.Kind)
	}
	o, err := bodyOf(rec)
	if err != nil {
		return err
	}
	return state.Fold(&e.state, o)
}

// The messages of OpenAI's chat completions.
type (
	openaiMessage struct {
		Role       string       `json:"role"`
		Content    string       `json:"content"`
		ToolCalls  []openaiCall `json:"tool_calls,omitempty"`
		ToolCallID string       `json:"tool_call_id,omitempty"`
	}
	openaiCall struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
)

// partial is false: what comes next depends on every operation.
func (e *openaiExport) partial() bool { return false }

func (e *openaiExport) end() error {
	messages := []openaiMessage{}
	for _, m := range e.state.Context.Chat() {
		messages = append(messages, openaiForm(m))
	}
	enc := json.NewEncoder(e.out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]any{"model": e.state.Model.Name, "messages": messages}); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func openaiForm(m model.Message) openaiMessage {
	out := openaiMessage{Role: string(m.Role), Content: m.Text, ToolCallID: m.CallID}
	for _, c := range m.Calls {
		call := openaiCall{ID: c.ID, Type: "function"}
		call.Function.Name, call.Function.Arguments = c.Name, c.Args
		out.ToolCalls = append(out.ToolCalls, call)
	}
	return out
}

// markdownExport writes a heading for each step and each operation, and what
// an operation says as a block that nothing in it can end.
type markdownExport struct {
	out  io.Writer
	step int
}

func (e *markdownExport) add(rec opstream.Record) error {
	o, unreadable := bodyOf(rec) // its body is shown as it is recorded
	var b strings.Builder
	if rec.Step != e.step {
		e.step = rec.Step
		fmt.Fprintf(&b, "## Step %d\n\n", rec.Step)
	}
	fmt.Fprintf(&b, "### op %d · %s · %s\n\n", rec.Seq, rec.Kind, rec.Time.Format(timeLayout))
	text := string(rec.Body)
	if o.Body != nil {
		text = state.OpText(o)
	}
	if text = strings.TrimRight(view.Clean(text), "\n"); text != "" && text != "{}" {
		fence := fenceFor(text)
		fmt.Fprintf(&b, "%stext\n%s\n%s\n\n", fence, text, fence)
	}
	if _, err := io.WriteString(e.out, b.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return unreadable
}

func (e *markdownExport) partial() bool { return true }

func (e *markdownExport) end() error { return nil }

// fenceFor is a code fence longer than any run of backticks in a text.
func fenceFor(text string) string {
	longest, run := 0, 0
	for _, c := range text {
		if run++; c != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	return strings.Repeat("`", max(3, longest+1))
}
