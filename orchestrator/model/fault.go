package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// FaultKind is the way in which a request failed.
type FaultKind string

const (
	FaultHTTP     FaultKind = "http"     // the provider answered with an error status, or an error inside the stream
	FaultNetwork  FaultKind = "network"  // no answer: no connection, or it broke before the reply began
	FaultCut      FaultKind = "cut"      // the reply ended without a finish reason
	FaultTimeout  FaultKind = "timeout"  // a named time limit ran out
	FaultOverflow FaultKind = "overflow" // the request does not fit the model's context window
	FaultRefused  FaultKind = "refused"  // the provider will not serve this request: key, quota, model, policy
	FaultProtocol FaultKind = "protocol" // what arrived is not a chat completion, or passed a size limit
	FaultScript   FaultKind = "script"   // a script did not expect this request
	FaultCanceled FaultKind = "canceled" // the caller's context ended
)

// Causes of a FaultRefused that another model need not share.
var (
	ErrNoKey   = errors.New("no API key")
	ErrNoTools = errors.New("the model cannot call tools")
)

// Fault is why a request got no reply. Its text never contains an API key.
type Fault struct {
	Kind FaultKind
	// Status is the HTTP status, 0 where there was none.
	Status int
	// Retryable reports that the same request may succeed later.
	Retryable bool
	// RetryAfter is how long the provider asked to wait; 0: it did not say.
	RetryAfter time.Duration
	// Partial is the text that had arrived. It is not a reply.
	Partial string
	// Tries is the number of requests made, at least 1 once Ask returned it.
	Tries int
	// Err is the cause, never nil in a Fault that Ask returned.
	Err error
}

// Error returns one line: the kind, the status, the cause, the tries.
func (f *Fault) Error() string {
	var b strings.Builder
	b.WriteString("model: ")
	switch f.Kind {
	case FaultHTTP, FaultRefused:
		b.WriteString(string(f.Kind))
	case FaultCut:
		b.WriteString("reply cut off")
	case FaultOverflow:
		b.WriteString("context overflow")
	default:
		b.WriteString(string(f.Kind))
	}
	if f.Status != 0 {
		fmt.Fprintf(&b, " (status %d)", f.Status)
	}
	if cause := f.cause(); cause != "" {
		b.WriteString(": " + cause)
	}
	if f.Tries > 1 {
		fmt.Fprintf(&b, " (after %d tries)", f.Tries)
	}
	return b.String()
}

// cause returns the text of Err without what the kind says already.
func (f *Fault) cause() string {
	switch {
	case f.Err == nil:
		return ""
	case f.Kind != FaultCanceled && f.Kind != FaultTimeout ||
		f.Kind == FaultCanceled && f.Err == context.DeadlineExceeded:
		return f.Err.Error()
	}
	parts := strings.Split(f.Err.Error(), ": ")
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool {
		return part == context.Canceled.Error() || part == context.DeadlineExceeded.Error()
	}), ": ")
}

func (f *Fault) Unwrap() error { return f.Err }

// AsFault returns the *Fault in err's chain. Any other non-nil error becomes one: canceled if
// it is a context's error, protocol otherwise.
func AsFault(err error) *Fault {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Fault{Kind: FaultCanceled, Tries: 1, Err: err}
	}
	return &Fault{Kind: FaultProtocol, Tries: 1, Err: err}
}
