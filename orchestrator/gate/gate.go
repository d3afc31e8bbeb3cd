package gate

import (
	"context"
	"sync"

	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/workspace"
)

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
}

// Gate decides by rules and the user's approval which calls run. Concurrent calls may use its
// methods.
type Gate struct {
	place *workspace.Place
	mu    sync.Mutex // guards o.Mode and o.Above
	o     Options
}

// New returns the gate of a task in a place.
func New(p *workspace.Place, o Options) *Gate {
	return &Gate{place: p, o: o}
}
