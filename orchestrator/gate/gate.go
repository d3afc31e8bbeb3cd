package gate

import (
	"context"
	"sync"

	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/workspace"
)

// byRepeat is the decision that refuses a call which ran twice.
const byRepeat = "guard:repeat"

// Options are what decides on calls beside the task's stream.
type Options struct {
	Tools   func() *tool.Registry                        // the ones offered now
	Approve func(ctx context.Context, q Question) Answer // if nil, calls that need approval are refused
	Asking  *sync.Mutex                                  // held while the user is asked
	Rules   []approval.Rule                              // beside the task's own
	Mode    approval.Mode
	// Above is the decision on a call by the task that began this one; nil if there is none,
	// or a user allowed everything.
	Above func(approval.Facts) approval.Decision
	// Polling lists calls that may repeat in an unchanged world; nil: loop.Polling.
	Polling []loop.Pattern
	// RunUndone lets a call that a jump has undone run in the same state of the files.
	RunUndone bool
	// KnownModel reports whether a model needs no investigation before its name is used.
	KnownModel func(name string) bool
}

// Gate decides which calls run: by rules and the user's approval, by research that must come
// first, and by earlier calls. Concurrent calls may use its methods.
type Gate struct {
	*journal.Ledger
	place *workspace.Place
	mu    sync.Mutex // guards o.Mode and o.Above
	o     Options
}

// New returns the gate of a task in a place.
func New(p *workspace.Place, o Options) *Gate {
	if o.Polling == nil {
		o.Polling = loop.Polling()
	}
	return &Gate{Ledger: p.Ledger, place: p, o: o}
}
