package notice

import (
	"context"
	"errors"
	"strings"

	"anamnesis/opstream/op"
)

// ErrTimeUp is the cause of a context that ended with the time limit.
var ErrTimeUp = errors.New("the time limit of --max-time is reached")

// ErrLost is the cause of a context that ended because the user's terminal is gone. A call that
// runs and may change something is finished; nothing else is begun.
var ErrLost = errors.New("the user's terminal was lost")

// What the result of a call that the user ended says.
const (
	interrupted = "the user interrupted the turn"
	cutShort    = "Interrupted by the user while it ran"
)

// EndedBy is the result of a call that did not run, with who ended the turn.
func EndedBy(ctx context.Context) string {
	if cause := context.Cause(ctx); errors.Is(cause, ErrTimeUp) || errors.Is(cause, ErrLost) {
		return cause.Error()
	}
	return interrupted
}

// CutShort is the result of a call that was ended while it ran.
func CutShort(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), ErrTimeUp) {
		return "Ended while it ran, because " + EndedBy(ctx)
	}
	return cutShort
}

// Halted names what ended a call, or kept it from running, other than its own end and a refusal;
// empty if nothing did.
func Halted(b *op.ToolReturned) string {
	says := func(text string) bool { return b.Exit == nil && b.IsError && strings.Contains(b.Text, text) }
	switch {
	case b.Exit != nil && strings.HasPrefix(b.Display, "timed out after "):
		return "timed out"
	case b.Exit != nil && strings.HasPrefix(b.Display, "interrupted: "), says("Not run: " + interrupted), says(cutShort):
		return "interrupted"
	case says("Not run: " + ErrTimeUp.Error()), says("because " + ErrTimeUp.Error()):
		return "time limit"
	case says("Not run: " + ErrLost.Error()):
		return "terminal lost"
	}
	return ""
}

// Finishing returns a context that ends with ctx, but not because of [ErrLost]. The caller
// calls end when the work is done.
func Finishing(ctx context.Context) (_ context.Context, end func()) {
	calling, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, ErrLost) {
			cancel(cause)
		}
	})
	return calling, func() {
		stop()
		cancel(nil)
	}
}
