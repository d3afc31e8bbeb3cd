package openai

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// timeoutError says which of the named limits ran out.
type timeoutError struct {
	what  string
	limit time.Duration
}

func (e *timeoutError) Error() string { return fmt.Sprintf("%s within %v", e.what, e.limit) }

// clock ends a request's context when nothing has come for too long. Its
// methods may be called from any goroutine.
type clock struct {
	cancel context.CancelCauseFunc
	total  *time.Timer

	mu      sync.Mutex
	timer   *time.Timer
	idle    time.Duration // 0 once in the trailer
	last    time.Duration // the limit of the trailer
	waiting *timeoutError // the limit the timer stands for
}

// startClock returns the context a request runs under. The clock lives as long
// as the call that started it, which stops it.
func startClock(parent context.Context, o Options, trailer time.Duration) (context.Context, *clock) {
	ctx, cancel := context.WithCancelCause(parent)
	c := &clock{cancel: cancel, idle: o.IdleTimeout, last: trailer}
	c.total = time.AfterFunc(o.TotalTimeout, func() {
		cancel(&timeoutError{"the reply was not complete", o.TotalTimeout})
	})
	c.waiting = &timeoutError{"nothing of a reply came", o.FirstByteTimeout}
	c.timer = time.AfterFunc(o.FirstByteTimeout, c.expire)
	return ctx, c
}

func (c *clock) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel(c.waiting)
}

// progress says that bytes came.
func (c *clock) progress() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == 0 {
		return // in the trailer, whose limit is for the whole of it
	}
	c.waiting = &timeoutError{"nothing more of the reply came", c.idle}
	c.timer.Reset(c.idle)
}

// trailer says that the finish reason came.
func (c *clock) trailer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == 0 {
		return
	}
	c.idle = 0
	c.waiting = &timeoutError{"the stream did not end", c.last}
	c.timer.Reset(c.last)
}

func (c *clock) stop() {
	c.total.Stop()
	c.timer.Stop()
	c.cancel(nil)
}
