package openai

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// timeoutError names the limit that was exceeded.
type timeoutError struct {
	what  string
	limit time.Duration
}

func (e *timeoutError) Error() string { return fmt.Sprintf("%s within %v", e.what, e.limit) }

// clock ends a request's context if nothing arrives for too long. Its methods may be called
// from any goroutine.
type clock struct {
	cancel context.CancelCauseFunc
	total  *time.Timer

	mu      sync.Mutex
	timer   *time.Timer
	idle    time.Duration // 0 once in the trailer
	last    time.Duration // the limit of the trailer
	waiting *timeoutError // the limit the timer runs for
}

// startClock returns the context of a request. The caller stops the clock.
func startClock(parent context.Context, o Options, trailer time.Duration) (context.Context, *clock) {
	ctx, cancel := context.WithCancelCause(parent)
	c := &clock{cancel: cancel, idle: o.IdleTimeout, last: trailer}
	c.total = time.AfterFunc(o.TotalTimeout, func() {
		cancel(&timeoutError{"the reply was not complete", o.TotalTimeout})
	})
	c.waiting = &timeoutError{"no part of a reply arrived", o.FirstByteTimeout}
	c.timer = time.AfterFunc(o.FirstByteTimeout, c.expire)
	return ctx, c
}

func (c *clock) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel(c.waiting)
}

func (c *clock) progress() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == 0 {
		return // the trailer has one limit for its whole length
	}
	c.waiting = &timeoutError{"no further part of the reply arrived", c.idle}
	c.timer.Reset(c.idle)
}

// trailer records that the finish reason arrived.
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
