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

// UntilSignal returns a context that ends with the first Ctrl-C or SIGTERM, after which
// a second one ends the process at once, or with the loss of the terminal. What was recorded
// can be resumed in each case. Within a [turn] the first Ctrl-C ends only the turn.
func UntilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	of := new(atomic.Pointer[context.CancelFunc])
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, turnKey{}, of))
	ends, lost := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(ends, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // not under nohup
		signal.Notify(lost, syscall.SIGHUP) // until the end: a terminal that goes sends several
	}
	go func() {
		for ctx.Err() == nil {
			select {
			case sig := <-ends:
				if end := of.Swap(nil); end != nil && sig == os.Interrupt {
					(*end)()
					continue
				}
				cancel(nil)
			case <-lost:
				cancel(notice.ErrLost)
			case <-ctx.Done():
			}
		}
		signal.Stop(ends)
	}()
	return ctx, func() { cancel(nil) }
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
