//go:build unix

package console

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"anamnesis/orchestrator/notice"
)

// UntilSignal returns a context that ends with the first Ctrl-C or SIGTERM, after which
// a second one ends the process at once, or with the loss of the terminal. What was recorded
// can be resumed in each case.
func UntilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	ends, lost := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(ends, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // not under nohup
		signal.Notify(lost, syscall.SIGHUP) // until the end: a terminal that goes sends several
	}
	go func() {
		select {
		case <-ends:
			cancel(nil)
		case <-lost:
			cancel(notice.ErrLost)
		case <-ctx.Done():
		}
		signal.Stop(ends)
	}()
	return ctx, func() { cancel(nil) }
}
