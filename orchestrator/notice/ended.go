package notice

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"anamnesis/opstream/op"
)

// ErrTimeUp is the cause of a context that ended with the time limit.
var ErrTimeUp = errors.New(timeLimit + " is reached")

// ErrStopped is the cause of a context of a turn that the user ended from outside of its process. The text of what
// wraps it says where the user did.
var ErrStopped = errors.New("the user stopped the turn")

const timeLimit = "the time limit"

// The causes of a context that ended because the program is asked to stop, not the turn: see
// [Evicted].
var (
	// ErrLost: the user's terminal is gone.
	ErrLost = errors.New("the user's terminal was lost")
	// ErrTerminated: the process got SIGTERM.
	ErrTerminated = errors.New("the program was asked to stop (SIGTERM)")
)

// Eviction is ErrLost or ErrTerminated, with what ends the grace period of the running call.
type Eviction struct {
	Err   error
	Hurry <-chan struct{} // closed when the user asks once more
}

func (e *Eviction) Error() string { return e.Err.Error() }

func (e *Eviction) Unwrap() error { return e.Err }

// Evicted reports whether a context ended because the program is asked to stop. A call that runs
// and may change something has a grace period to end by itself; nothing else is begun, and the turn
// stays open for the next process.
func Evicted(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, ErrLost) || errors.Is(cause, ErrTerminated)
}

// graceful reports whether a call that runs has a grace period.
func graceful(ctx context.Context) bool {
	return Evicted(ctx) || errors.Is(context.Cause(ctx), ErrStopped)
}

// DefaultGrace is the grace period: most builds' steps end in it, and it is within the 30 s after
// which Kubernetes kills.
const DefaultGrace = 20 * time.Second

// What the result of a call that the user ended says.
const (
	interrupted = "the user interrupted the turn"
	cutShort    = "Interrupted by the user while it ran"
)

// EndedBy is the result of a call that did not run, with who ended the turn.
func EndedBy(ctx context.Context) string {
	if cause := context.Cause(ctx); errors.Is(cause, ErrTimeUp) || graceful(ctx) {
		return cause.Error()
	}
	return interrupted
}

// CutShort is the result of a call that was ended while it ran.
func CutShort(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), ErrTimeUp) || graceful(ctx) {
		return "Ended while it ran, because " + EndedBy(ctx)
	}
	return cutShort
}

// Halted names what ended a call, or kept it from running, other than its own end and a refusal;
// empty if nothing did.
func Halted(b *op.ToolReturned) string {
	says := func(text string) bool { return b.Exit == nil && b.IsError && strings.Contains(b.Text, text) }
	by := func(cause string) bool {
		return b.Exit != nil && strings.HasPrefix(b.Display, "ended because "+cause) || says("Not run: "+cause) ||
			says("because "+cause)
	}
	switch {
	case b.Exit != nil && strings.HasPrefix(b.Display, "timed out after "):
		return "timed out"
	case b.Exit != nil && strings.HasPrefix(b.Display, "interrupted: "), says("Not run: " + interrupted),
		says(cutShort):
		return "interrupted"
	case by(timeLimit): // earlier streams say which flag set it
		return "time limit"
	case by(ErrLost.Error()):
		return "terminal lost"
	case by(ErrTerminated.Error()):
		return "program stopped"
	case by(ErrStopped.Error()):
		return "stopped"
	}
	return ""
}

// Finishing returns a context that ends with ctx, or, if ctx ended with an eviction or a stop, when the grace
// period is over; a negative one is none. The caller calls end when the work is done.
func Finishing(ctx context.Context, grace time.Duration) (_ context.Context, end func()) {
	calling, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if graceful(ctx) && grace >= 0 {
			var hurry <-chan struct{}
			if e, ok := errors.AsType[*Eviction](context.Cause(ctx)); ok {
				hurry = e.Hurry
			}
			select {
			case <-calling.Done():
			case <-hurry:
			case <-time.After(cmp.Or(grace, DefaultGrace)):
			}
		}
		cancel(context.Cause(ctx))
	})
	return calling, func() {
		stop()
		cancel(nil)
	}
}
