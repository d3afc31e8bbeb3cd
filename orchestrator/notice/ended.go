package notice

import (
	"context"
	"errors"
)

// ErrTimeUp is the cause of a context that ended with the time limit.
var ErrTimeUp = errors.New("the time limit of --max-time is reached")

// EndedBy tells the model who ended the calls of a reply.
func EndedBy(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), ErrTimeUp) {
		return ErrTimeUp.Error()
	}
	return "the user interrupted the turn"
}

// CutShort tells the model who ended a call that ran.
func CutShort(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), ErrTimeUp) {
		return "Ended while it ran, because " + EndedBy(ctx)
	}
	return "Interrupted by the user while it ran"
}
