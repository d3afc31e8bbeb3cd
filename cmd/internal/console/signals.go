//go:build unix

package console

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"anamnesis/orchestrator/notice"
)

// UntilSignal returns a context that ends with the first Ctrl-C, SIGTERM or loss of the terminal.
// The last two are a [notice.Eviction], whose grace period the next Ctrl-C or SIGTERM ends. The
// Ctrl-C or SIGTERM after that, or after a Ctrl-C, ends the process at once. What was recorded can
// be resumed in each case. Within a [turn] the first Ctrl-C ends only the turn.
func UntilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	of := new(atomic.Pointer[context.CancelFunc])
	base, stop := context.WithCancel(context.WithValue(ctx, turnKey{}, of))
	ctx, cancel := context.WithCancelCause(base)
	ends, lost := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(ends, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // not under nohup
		signal.Notify(lost, syscall.SIGHUP) // until the end: a terminal that goes sends several
	}
	hurry := make(chan struct{})
	go func() {
		defer signal.Stop(ends)
		for {
			select {
			case sig := <-ends:
				end := of.Swap(nil)
				switch {
				case ctx.Err() != nil:
					close(hurry)
					return
				case sig != os.Interrupt:
					cancel(&notice.Eviction{Err: notice.ErrTerminated, Hurry: hurry})
				case end != nil:
					(*end)()
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

// turnKey is the key of what ends the present turn in a context of [UntilSignal].
type turnKey struct{}

// turn returns a context that ends with the next Ctrl-C in place of ctx, until it is canceled.
func turn(ctx context.Context) (context.Context, context.CancelFunc) {
	turn, cancel := context.WithCancel(ctx)
	if of, ok := ctx.Value(turnKey{}).(*atomic.Pointer[context.CancelFunc]); ok {
		of.Store(&cancel)
		context.AfterFunc(turn, func() { of.CompareAndSwap(&cancel, nil) })
	}
	return turn, cancel
}
