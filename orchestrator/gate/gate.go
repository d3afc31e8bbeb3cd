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

// Options say what decides on calls beside what the task's stream holds.
type Options struct {
	Tools   func() *tool.Registry                        // those that are offered now
	Approve func(ctx context.Context, q Question) Answer // if nil, calls that need approval are refused
	Asking  *sync.Mutex                                  // held while the user is asked
	Rules   []approval.Rule                              // standing answers beside the task's own
	Mode    approval.Mode
	// Above is what the task that began this one would decide of a call; nil where
	// none did, or a user allowed everything.
	Above func(approval.Facts) approval.Decision
	// Polling lists calls that may be repeated in an unchanged world.
	Polling []loop.Pattern
	// RunUndone lets a call that a jump has undone run in the same state of the files.
	RunUndone bool
	// KnownModel reports whether a model needs no investigation before its name is used.
	KnownModel func(name string) bool
}

// Gate decides which calls run: rules and the user's approval, research that has to
// come first, and calls that were made before. Its methods may be called by calls that
// run at once.
type Gate struct {
	*journal.Ledger
	place *workspace.Place
	mu    sync.Mutex // guards o.Mode and o.Above
	o     Options
}

// New returns the gate of a task in a place.
func New(p *workspace.Place, o Options) *Gate { return &Gate{Ledger: p.Ledger, place: p, o: o} }
