package runtime

import (
	"context"
	"errors"
)

// errTimeUp is why a request or the calls of a reply end when the time of Limits
// is over.
var errTimeUp = errors.New("the time limit of --max-time is reached")

// withinTime is a context that ends with the time this process may work.
func (t *ledger) withinTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.opts.Limits.Time <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, t.opts.Limits.Time-t.now().Sub(t.opts.family.begun), errTimeUp)
}

// endedBy says to the model who ended the calls of a reply.
func endedBy(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), errTimeUp) {
		return errTimeUp.Error()
	}
	return "the person interrupted the turn"
}

// cutShort says of a call that ran what became of it.
func cutShort(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), errTimeUp) {
		return "Ended while it ran, because " + endedBy(ctx)
	}
	return "Interrupted by the person while it ran"
}
