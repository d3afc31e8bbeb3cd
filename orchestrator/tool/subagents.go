package tool

import (
	"context"
	"encoding/json"
)

// Subagents are the agents that a task hands work to. A Tool gets them in its
// Env.
type Subagents interface {
	// Begin makes a subagent's task, or takes one up again. A *CallError is shown
	// to the model; any other error is the program's own.
	Begin(ctx context.Context, s SubagentStart) (Subagent, error)
}

// Subagent is one that has begun.
type Subagent interface {
	// Work has it work until its turn ends, and records that. It must be called
	// once, and may be from any goroutine; when ctx has ended it returns soon. The
	// error is the program's own: what the model can act on is in the end's Text.
	Work(ctx context.Context) (SubagentEnd, error)
}

// SubagentStart is what Begin is asked for.
type SubagentStart struct {
	Call        string // the call's id
	Agent       string // its name
	Description string // a few words for people
	Prompt      string
	Resume      string // the task of a subagent that continues; empty: a new one
	Fork        bool   // in a directory of its own
	// Progress shows a user how far it is; may be nil.
	Progress func(text string)
}

// SubagentEnd is what came of it.
type SubagentEnd struct {
	Text    string // for the model
	Display string // for people
	IsError bool
	Network bool // text from outside may be in Text
}

// Varying is a tool whose effects depend on its arguments.
type Varying interface {
	Tool
	// SpecFor is the spec of a call with these arguments, which Validate has
	// accepted. It differs from Spec only in ReadOnly.
	SpecFor(args json.RawMessage) Spec
}

// SpecOf is the spec of one call.
func SpecOf(t Tool, args json.RawMessage) Spec {
	if v, ok := t.(Varying); ok {
		return v.SpecFor(args)
	}
	return t.Spec()
}
