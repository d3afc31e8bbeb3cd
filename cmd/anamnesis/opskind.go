//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// logKinds begin the kinds that a stream's log writes itself. One of another
// hand is a forged seal.
const logKinds = "log."

// mayAppend says which kinds may be appended to a stream by hand: never the
// log's own, and to a task's stream none that this program knows, because the
// task is folded from those.
func mayAppend(kind, dir string, owner taskdir.Owner) error {
	refuse := func(why string) error {
		return &exitError{exitRefused, fmt.Errorf("append to %s: %s; use a kind of your own, such as x.%s. Nothing was written", dir, why, kind)}
	}
	switch {
	case strings.HasPrefix(kind, logKinds):
		return refuse(fmt.Sprintf("kind %s is written by the stream's log alone", kind))
	case owner.Task != "" && ownKind(kind):
		return refuse(fmt.Sprintf("it is the stream of task %s, and what is of kind %s there is written by the program alone", owner.Task, kind))
	}
	return nil
}

// ownKind reports whether this program knows a kind.
func ownKind(kind string) bool {
	_, err := op.Decode(op.Kind(kind), []byte("{}"))
	return !errors.Is(err, op.ErrUnknownKind)
}

// fitting gives the bodies up to the first that a reader of their kind could
// not read, and says what is wrong with that one. What is no JSON is left to
// the stream, which refuses it. first is the number of the batch's first line.
func fitting(kind string, bodies []numberedBody, first int) ([]numberedBody, error) {
	for i, b := range bodies {
		_, err := op.Decode(op.Kind(kind), b.body)
		if err != nil && !errors.Is(err, op.ErrUnknownKind) && json.Valid(b.body) {
			return bodies[:i], usageError("line %d of standard input: %w", first+b.line, err)
		}
	}
	return bodies, nil
}
