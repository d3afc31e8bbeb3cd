//go:build unix

package console

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"anamnesis/orchestrator/notice"
)

// UntilSignal returns a context that ends with the first Ctrl-C, SIGTERM or loss of the terminal.
// The last two are a [notice.Eviction], whose grace period the next Ctrl-C or SIGTERM ends. The
// Ctrl-C or SIGTERM after that, or after a Ctrl-C, ends the process at once. What was recorded can
// be resumed in each case.
func UntilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	base, stop := context.WithCancel(ctx)
	ctx, cancel := context.WithCancelCause(base)
	ends, lost := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(ends, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // not under nohup
		signal.Notify(lost, syscall.SIGHUP) // never stopped: a lost terminal sends several, which would kill
	}
	hurry := make(chan struct{})
	go func() {
		defer signal.Stop(ends)
		for {
			select {
			case sig := <-ends:
				switch {
				case ctx.Err() != nil:
					close(hurry)
					return
				case sig != os.Interrupt:
					cancel(&notice.Eviction{Err: notice.ErrTerminated, Hurry: hurry})
				default:
					cancel(nil)
					return
				}
			case <-lost:
				cancel(&notice.Eviction{Err: notice.ErrLost, Hurry: hurry})
			case <-base.Done():
				return
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		stop()
	}
}
