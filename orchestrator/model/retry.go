package model

import (
	"context"
	"math/rand/v2"
	"time"
)

// The default limits of Retry.
const (
	// DefaultMaxTries is how often a request is made in all.
	DefaultMaxTries = 5
	// DefaultBaseDelay bounds the first wait; each further bound is twice
	// the one before.
	DefaultBaseDelay = 500 * time.Millisecond
	// DefaultMaxDelay bounds every wait that the provider did not ask for.
	DefaultMaxDelay = 30 * time.Second
	// DefaultMaxRetryAfter is the longest wait that a provider may ask for. If it asks for a longer
	// one, the request is not repeated.
	DefaultMaxRetryAfter = 2 * time.Minute
)

// RetryOptions are Retry's settings; the zero value means the defaults.
type RetryOptions struct {
	MaxTries      int
	BaseDelay     time.Duration
	MaxDelay      time.Duration
	MaxRetryAfter time.Duration
	// OnRetry is called before each wait, from the goroutine that called Ask.
	OnRetry func(Attempt)
	// Sleep waits for d or until ctx ends, and then returns ctx's error. nil: the real clock.
	Sleep func(ctx context.Context, d time.Duration) error
	// Rand returns numbers in [0,1). It must be safe for concurrent use.
	// nil: math/rand/v2.
	Rand func() float64
}

// Attempt reports a try that failed and will be followed by another.
type Attempt struct {
	Try   int           // the try that failed, from 1
	Of    int           // tries at most
	Wait  time.Duration // how long until the next one
	Fault *Fault        // why it failed
}

// Retry returns a model that asks m again after a retryable fault: at most MaxTries requests,
// waiting a uniformly random time up to an exponentially growing bound ("full jitter",
// https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/), and never less
// than a Retry-After. A final fault holds the number of tries. If pieces of a failed try were
// already streamed, a Delta with Restart set precedes the next try's.
func Retry(m Model, o *RetryOptions) Model {
	r := &retrier{model: m}
	if o != nil {
		r.o = *o
	}
	r.o.MaxTries = positive(r.o.MaxTries, DefaultMaxTries)
	r.o.BaseDelay = positive(r.o.BaseDelay, DefaultBaseDelay)
	r.o.MaxDelay = positive(r.o.MaxDelay, DefaultMaxDelay)
	r.o.MaxRetryAfter = positive(r.o.MaxRetryAfter, DefaultMaxRetryAfter)
	if r.o.Sleep == nil {
		r.o.Sleep = Wait
	}
	if r.o.Rand == nil {
		r.o.Rand = rand.Float64
	}
	return r
}

func positive[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// Wait waits for d, or until ctx ends, and then returns ctx's error.
func Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type retrier struct {
	model Model
	o     RetryOptions
}

func (r *retrier) Name() string { return r.model.Name() }

func (r *retrier) Ask(ctx context.Context, req Request, on func(Delta)) (Reply, error) {
	var streamed bool
	pass := on
	if on != nil {
		pass = func(d Delta) {
			streamed = true
			on(d)
		}
	}
	for try := 1; ; try++ {
		reply, err := r.model.Ask(ctx, req, pass)
		if err == nil {
			return reply, nil
		}
		// A copy: its maker may share the fault.
		fault := *AsFault(err)
		fault.Tries = try
		if !fault.Retryable || req.Once || try >= r.o.MaxTries || fault.RetryAfter > r.o.MaxRetryAfter ||
			ctx.Err() != nil {
			return Reply{}, &fault
		}
		a := Attempt{Try: try, Of: r.o.MaxTries, Fault: &fault, Wait: r.delay(try, fault.RetryAfter)}
		if r.o.OnRetry != nil {
			r.o.OnRetry(a)
		}
		if err := r.o.Sleep(ctx, a.Wait); err != nil {
			return Reply{}, &Fault{Kind: FaultCanceled, Partial: fault.Partial, Tries: try, Err: err}
		}
		if streamed {
			streamed = false
			on(Delta{Restart: true})
		}
	}
}

// delay returns how long to wait after try number try has failed.
func (r *retrier) delay(try int, after time.Duration) time.Duration {
	bound := r.o.MaxDelay
	if shift := try - 1; r.o.BaseDelay<<shift>>shift == r.o.BaseDelay {
		bound = min(bound, r.o.BaseDelay<<shift)
	}
	return max(time.Duration(r.o.Rand()*float64(bound)), after)
}
