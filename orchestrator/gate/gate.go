package gate

import (
	"context"
	"encoding/json"
	"sync"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/orchestrator/workspace"
)

// Options are what decides on calls beside the task's stream.
type Options struct {
	Tools func() *tool.Registry                                   // the ones offered now
	Env   func(ctx context.Context, c op.Call) (*tool.Env, error) // of a call
	// Approve asks whether a call may run; false: there is no answer. If nil, calls that need approval are
	// refused.
	Approve func(ctx context.Context, q Question) (a Answer, ok bool, err error)
	Trust   *consent.Trust // has the calls that the user always lets run in a directory; may be nil
	// Editing is called with what a call is about to change, redacted, before Approve; may be nil.
	Editing func(c op.Call, changes []file.Change)
	Rules   []approval.Rule // beside the task's own
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

// CheckArgs finds the tool, checks the arguments and prepares the call's environment. It puts the
// values of markers into the arguments of a tool that may write them.
func (g *Gate) CheckArgs(ctx context.Context, c *Call) ([]op.Body, error) {
	if ctx.Err() != nil { // the turn was interrupted, or its time is over
		return c.Fail("Not run: " + notice.EndedBy(ctx) + "."), nil
	}
	var err error
	if c.Tool, c.Input, err = g.o.Tools().Validate(c.Call); err != nil {
		return c.Fail(err.Error()), nil
	}
	c.Spec = tool.SpecOf(c.Tool, c.Input)
	if c.Env, err = g.o.Env(ctx, c.Call); err != nil {
		return nil, err
	}
	if c.Input, err = g.place.Journal.UnredactArgs(c.Env, c.Spec, c.Input); err != nil {
		return c.Fail(err.Error()), nil
	}
	return nil, nil
}

// Prepare makes what the approval depends on: the sandbox of a call that runs a command, and
// the preview of one that edits. A call that cannot be made needs no approval: it goes on with a
// tool that fails.
func (g *Gate) Prepare(ctx context.Context, c *Call) (refusal []op.Body, err error) {
	if c.Spec.Command != "" {
		if c.Env.Sandbox, err = g.place.Sandbox.Get(ctx); ctx.Err() != nil {
			return c.Fail("Not run: " + notice.EndedBy(ctx) + "."), nil
		} else if err != nil {
			return nil, err
		}
	}
	if !c.Spec.Edits || g.o.Approve == nil {
		return nil, nil
	}
	changes, err := file.Preview(c.Env, c.Name, c.Input)
	if err != nil {
		c.Tool, c.Spec.ReadOnly = failing{c.Tool, err}, true
		return nil, nil
	}
	if len(changes) == 0 || g.o.Editing == nil {
		return nil, nil
	}
	for i := range changes {
		changes[i].Before, changes[i].After = g.place.Journal.RedactText(changes[i].Before),
			g.place.Journal.RedactText(changes[i].After)
	}
	g.o.Editing(c.Call, changes)
	return nil, nil
}

// failing is a tool whose call fails, whatever has become of the files since err was found.
type failing struct {
	tool.Tool
	err error
}

func (f failing) Call(context.Context, *tool.Env, json.RawMessage) (tool.Result, error) {
	return tool.Errorf("%s: %v. Nothing was written.", f.Spec().Name, f.err), nil
}
