package tool

import (
	"context"
	"encoding/json"
)

// Subagents are the agents that a task hands work to. A Tool gets them in its Env.
type Subagents interface {
	// Begin creates a subagent's task, or resumes one. A *CallError is shown to the model; any
	// other error is internal.
	Begin(ctx context.Context, s SubagentStart) (Subagent, error)
}

// Subagent is a subagent that has begun.
type Subagent interface {
	// Work runs the subagent until its turn ends, and records that. It must be called once,
	// from any goroutine; when ctx has ended it returns soon. The error is internal: what the
	// model can act on is in the end's Text.
	Work(ctx context.Context) (SubagentEnd, error)
}

// SubagentStart is the request to Begin.
type SubagentStart struct {
	Call        string // the call's id
	Agent       string // its name
	Description string // a few words for users
	Prompt      string
	Resume      string // the task of a subagent that continues; empty: a new one
	Fork        bool   // in a directory of its own
	// Progress shows a user the subagent's progress; may be nil.
	Progress func(text string)
}

// SubagentEnd is a subagent's result.
type SubagentEnd struct {
	Text    string // for the model
	Display string // for users
	IsError bool
	Network bool // Text may hold text from outside
}

// Varying is a tool whose effects depend on its arguments.
type Varying interface {
	Tool
	// SpecFor returns the spec of a call with these arguments, which Validate has accepted. It
	// differs from Spec only in ReadOnly.
	SpecFor(args json.RawMessage) Spec
}

// SpecOf returns the spec of one call.
func SpecOf(t Tool, args json.RawMessage) Spec {
	if v, ok := t.(Varying); ok {
		return v.SpecFor(args)
	}
	return t.Spec()
}
