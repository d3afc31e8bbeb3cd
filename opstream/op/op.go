// Package op is the vocabulary of the operation stream: the kinds of operations and their
// bodies, as pure data. All packages read these; the log does not interpret them.
//
// Bodies are JSON objects. Fields may be added, never renamed or removed, and
// a reader ignores fields and kinds it does not know: a stream written by a
// newer program stays readable by an older one.
package op

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"
)

// Body is one operation's content.
type Body interface {
	// Kind is the operation kind this body belongs to.
	Kind() Kind
}

// Op is one decoded record of the stream.
type Op struct {
	Seq  uint64    // position in the stream, from 1, without gaps
	Step int       // the step that was under way, from 0
	Tok  int       // tokens of the op's unmasked projection
	Time time.Time // advice only: order is by Seq
	Body Body
}

// Range is an inclusive range of sequence numbers.
type Range struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// Contains reports whether seq lies in the range.
func (r Range) Contains(seq uint64) bool { return r.First <= seq && seq <= r.Last }

func (r Range) String() string {
	if r.First == r.Last {
		return fmt.Sprintf("%d", r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// ErrUnknownKind is returned by Decode for a kind this program does not know.
// It is not corruption: the stream may have been written by a newer program.
var ErrUnknownKind = errors.New("unknown operation kind")

// Decode parses the JSON body of an operation of kind k. Unknown kinds return ErrUnknownKind,
// other mismatches an error naming the kind.
func Decode(k Kind, body []byte) (Body, error) {
	typ, known := bodyTypes()[k]
	if !known {
		return nil, fmt.Errorf("decode operation: %w %q", ErrUnknownKind, k)
	}
	b := reflect.New(typ).Interface().(Body)
	if err := json.Unmarshal(body, b); err != nil {
		return nil, fmt.Errorf("decode operation %q: %w", k, err)
	}
	return b, nil
}

// Encode returns the JSON body of an operation.
func Encode(b Body) ([]byte, error) {
	data, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode operation %q: %w", b.Kind(), err)
	}
	return data, nil
}

// bodyTypes are the types of Bodies by their kinds.
var bodyTypes = sync.OnceValue(func() map[Kind]reflect.Type {
	types := make(map[Kind]reflect.Type)
	for _, b := range Bodies() {
		types[b.Kind()] = reflect.TypeOf(b).Elem()
	}
	return types
})

// Kind returns the kind of the operation, "unknown" for one of a newer program.
func (o Op) Kind() Kind {
	if o.Body == nil {
		return "unknown"
	}
	return o.Body.Kind()
}
