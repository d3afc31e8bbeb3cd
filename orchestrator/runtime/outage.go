package runtime

import (
	"context"
	"math/rand/v2"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// Limits of the wait for a provider that fails transiently.
const (
	firstWait = time.Second     // the first wait; each further one is twice as long
	maxWait   = 5 * time.Minute // unless the provider names a longer one
	// maxJitter bounds what is added to a wait that the provider names.
	maxJitter = 30 * time.Second
	// maxCut is how many replies in a row may break off after they began: each of them costs tokens.
	maxCut = 10
	// unreached bounds the wait for a server that has never answered this task: its address may be
	// wrong.
	unreached = 5 * time.Minute
)

// waitAfter returns the wait after a failed request, nil if the request is not to be repeated. A wait
// that the provider names does not count as outage.
func (t *Task) waitAfter(f *model.Fault) *op.Wait {
	limit := t.opts.Limits.Outage
	if !f.Retryable || limit <= 0 {
		return nil
	}
	if f.Kind == model.FaultNetwork && t.Ledger.State().Totals.Replies == 0 {
		limit = min(limit, unreached)
	}
	now := t.Ledger.Now().UTC().Round(0)
	w := &op.Wait{Since: now}
	if o := t.Ledger.State().Outage; o != nil {
		*w = o.Wait
	}
	w.Tries++
	if f.Partial != "" {
		w.Cut++
	}
	backoff := maxWait // also after so many tries that the shift could overflow
	if n := w.Tries - 1; n < 16 {
		backoff = min(maxWait, firstWait<<n)
	}
	// Half of the wait is random, so that tasks that failed together do not ask again together.
	backoff = backoff/2 + rand.N(backoff/2)
	named := f.RetryAfter
	if named > 0 { // tasks that were told the same time do not ask at once
		named += rand.N(min(named/10, maxJitter) + 1)
	}
	// What a named wait has beyond the backoff does not count as outage. The rest counts, so that a provider that names
	// one second each time still reaches the limit.
	w.Since = w.Since.Add(max(named-backoff, 0))
	w.End = w.Since.Add(limit)
	w.Until = now.Add(max(min(backoff, w.End.Sub(now)), named))
	if !now.Before(w.End) || w.Cut >= maxCut {
		return nil
	}
	return w
}

// awaitProvider waits until the provider is to be asked again. It returns false if the wait was cut
// short, or something was posted meanwhile that comes first, such as a user's jump.
func (t *Task) awaitProvider(ctx context.Context) bool {
	o := t.Ledger.State().Outage
	if o == nil {
		return true
	}
	ctx, cancel := t.withinTime(ctx)
	defer cancel()
	t.askNow.Store(false)
	begun := t.Ledger.Now()
	whole := o.Until.Sub(begun)
	for {
		// The wall clock runs while the machine sleeps, and the monotonic one cannot be set back: the shorter rest
		// holds.
		left := min(o.Until.Sub(t.Ledger.Now().Round(0)), whole-t.Ledger.Now().Sub(begun))
		if left <= 0 || t.askNow.Load() {
			return true
		}
		posted := false
		t.Ledger.Journal.ReadQueue(func(queue []op.Op) { posted = len(queue) > 0 })
		if posted {
			return false
		}
		if t.opts.Callbacks.Waiting != nil {
			t.opts.Callbacks.Waiting(*o, left)
		}
		if model.Wait(ctx, min(left, time.Second)) != nil {
			return false
		}
	}
}

// AskNow ends a wait for the provider: it is asked again within a second.
func (t *Task) AskNow() { t.askNow.Store(true) }

// watched is a callback for the pieces of a reply that notes whether there were any; nil stays nil.
func watched(on func(model.Delta), any *bool) func(model.Delta) {
	if on == nil {
		return nil
	}
	return func(d model.Delta) {
		*any = true
		on(d)
	}
}
