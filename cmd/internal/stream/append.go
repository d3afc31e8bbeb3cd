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
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, opstream.MaxBodyBytes+1)
	number := 1
	for ; lines.Scan(); number++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := a.append(ctx, number, bytes.Clone(lines.Bytes())); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return badLine(number, fmt.Errorf("%w: more than %d bytes", opstream.ErrTooLarge, opstream.MaxBodyBytes))
	case err != nil:
		return fmt.Errorf("read standard input: %w", err)
	}
	return nil
}

func badLine(number int, err error) error {
	return session.Usagef("line %d of standard input: %w", number, err)
}

// append appends the body on a line. What is JSON must be readable as the kind, if this program knows that.
func (a *Appender) append(ctx context.Context, number int, body []byte) error {
	_, err := op.Decode(op.Kind(a.Kind), body)
	if err != nil && !errors.Is(err, op.ErrUnknownKind) && json.Valid(body) {
		return badLine(number, err)
	}
	if body, err = a.redact(body); err != nil {
		return err
	}
	seq, err := a.log.Append(ctx, opstream.Entry{Kind: a.Kind, Step: a.Step, Body: body})
	if errors.Is(err, opstream.ErrInvalid) || errors.Is(err, opstream.ErrTooLarge) {
		return badLine(number, err)
	} else if err != nil {
		return err
	}
	return a.Durable(seq)
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
