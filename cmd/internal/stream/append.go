//go:build unix

// Package stream appends operations that arrive as text, picks and prints records, and
// exports streams, for the command's plumbing verbs. It parses no flags.
package stream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

const (
	// batchLines is how many lines that are there already share one write.
	batchLines = 256
	// readBytes is the buffer of the input.
	readBytes = 1 << 20
)

// ErrKind: only the program appends operations of that kind to that stream.
var ErrKind = errors.New("only the program writes that")

// Appender appends the JSON objects on the lines of a text to a stream, one operation
// for each.
type Appender struct {
	Kind      string
	Step      int
	Secrets   func(taskdir.Owner) []redact.Secret // those of the stream's owner
	Recovered func(*opstream.Recovery)            // sees that the stream's end was torn
	Durable   func(seq uint64) error              // sees the number of each operation once it is durable

	log    *opstream.Log
	redact func(body []byte) ([]byte, error)
}

// Append appends the operations of in to the stream in dir. It waits for another writer.
func (a *Appender) Append(ctx context.Context, dir string, wait time.Duration, in io.Reader) (err error) {
	if a.log, err = opstream.Open(dir, &opstream.Options{Wait: wait}); err != nil {
		return err
	}
	defer func() { err = session.JoinClose(err, a.log.Close()) }()
	owner, err := taskdir.StreamOwner(dir)
	if err != nil {
		return err
	}
	if err := checkKind(a.Kind, dir, owner); err != nil {
		return err
	}
	secrets, err := journal.OpenScrubber(dir, a.Secrets(owner))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, secrets.Close()) }()
	if r := a.log.Recovered(); r != nil {
		a.Recovered(r)
	}
	a.redact = secrets.Body
	return a.run(ctx, in)
}

// run appends until the end of in, or up to the first line that is no operation.
func (a *Appender) run(ctx context.Context, in io.Reader) error {
	lines := bufio.NewReaderSize(in, readBytes)
	for number := 1; ; {
		bodies, read, end := readBodies(lines)
		bodies, unfit := a.fitting(bodies, number)
		for i := range bodies {
			var err error
			if bodies[i].body, err = a.redact(bodies[i].body); err != nil {
				return err
			}
		}
		if err := a.append(ctx, bodies, number); err != nil {
			return err
		}
		if unfit != nil {
			return unfit
		}
		number += read
		switch {
		case end == io.EOF:
			return nil
		case errors.Is(end, opstream.ErrTooLarge):
			return badLine(number, end)
		case end != nil:
			return fmt.Errorf("read standard input: %w", end)
		}
	}
}

func badLine(number int, err error) error {
	return session.Usagef("line %d of standard input: %w", number, err)
}

// numberedBody is one body and its line, counted from 0 within a batch.
type numberedBody struct {
	line int
	body []byte
}

// readBodies reads one line, and those that are buffered already. It returns how many
// lines were read whole, blank ones included.
func readBodies(in *bufio.Reader) (bodies []numberedBody, read int, err error) {
	for size := 0; read == 0 || (read < batchLines && size < readBytes && lineBuffered(in)); {
		line, err := readLine(in)
		if len(bytes.TrimSpace(line)) > 0 && !errors.Is(err, opstream.ErrTooLarge) {
			bodies = append(bodies, numberedBody{read, line})
			size += len(line)
		}
		if err != nil {
			return bodies, read, err
		}
		read++
	}
	return bodies, read, nil
}

// lineBuffered reports whether a whole line can be read without waiting.
func lineBuffered(in *bufio.Reader) bool {
	data, _ := in.Peek(in.Buffered())
	return bytes.IndexByte(data, '\n') >= 0
}

// readLine reads a line of at most opstream.MaxBodyBytes, without its newline.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > opstream.MaxBodyBytes {
			return nil, fmt.Errorf("%w: more than %d bytes", opstream.ErrTooLarge, opstream.MaxBodyBytes)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(line, []byte("\n")), err
		}
	}
}

// append appends a batch in one write; when one of its bodies cannot be appended, one
// by one up to that. first is the number of the batch's first line.
func (a *Appender) append(ctx context.Context, bodies []numberedBody, first int) error {
	if len(bodies) == 0 {
		return nil
	}
	entries := make([]opstream.Entry, len(bodies))
	for i, b := range bodies {
		entries[i] = opstream.Entry{Kind: a.Kind, Step: a.Step, Body: b.body}
	}
	seq, err := a.log.Append(ctx, entries...)
	if err == nil {
		return a.durable(seq, len(entries))
	}
	bad := func(err error) bool {
		return errors.Is(err, opstream.ErrInvalid) || errors.Is(err, opstream.ErrTooLarge)
	}
	if !bad(err) {
		return err
	}
	for i, e := range entries {
		seq, err := a.log.Append(ctx, e)
		if bad(err) {
			return badLine(first+bodies[i].line, err)
		}
		if err != nil {
			return err
		}
		if err := a.durable(seq, 1); err != nil {
			return err
		}
	}
	return nil
}

func (a *Appender) durable(first uint64, n int) error {
	for seq := first; seq < first+uint64(n); seq++ {
		if err := a.Durable(seq); err != nil {
			return err
		}
	}
	return nil
}

// logKinds begin the kinds that a stream's log writes itself. One written by anything
// else is a forged seal.
const logKinds = "log."

// checkKind refuses the kinds that may not be appended to a stream by hand: the log's
// own, and to a task's stream all that this program knows, because the task is folded
// from those.
func checkKind(kind, dir string, owner taskdir.Owner) error {
	of := ""
	switch {
	case strings.HasPrefix(kind, logKinds):
	case owner.Task != "" && ownKind(kind):
		of = " of task " + owner.Task
	default:
		return nil
	}
	return fmt.Errorf("append to %s: %w: kind %s in the stream%s; use a kind of your own, such as x.%s. Nothing was written", dir, ErrKind, kind, of, kind)
}

// ownKind reports whether this program knows a kind.
func ownKind(kind string) bool {
	_, err := op.Decode(op.Kind(kind), []byte("{}"))
	return !errors.Is(err, op.ErrUnknownKind)
}

// fitting returns the bodies up to the first that a reader of their kind could not
// read, and what is wrong with that one. What is no JSON is left to the stream, which
// refuses it. first is the number of the batch's first line.
func (a *Appender) fitting(bodies []numberedBody, first int) ([]numberedBody, error) {
	for i, b := range bodies {
		_, err := op.Decode(op.Kind(a.Kind), b.body)
		if err != nil && !errors.Is(err, op.ErrUnknownKind) && json.Valid(b.body) {
			return bodies[:i], badLine(first+b.line, err)
		}
	}
	return bodies, nil
}
