// Package tool defines the agent's tools: the Tool interface, the registry that checks a call
// before it runs, and the path rules of the file tools. The tools are in the folders below;
// package builtin lists them.
package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/jsonschema-go/jsonschema"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/redact"
)

// Spec describes a tool to the model and to the approval rules.
type Spec struct {
	// Name is the tool's name for the model: 1 to 64 letters, digits, _ or -.
	Name string
	// Description tells the model what it does and its limits.
	Description string
	// Schema is the JSON Schema of the arguments, of type object.
	Schema *jsonschema.Schema
	// ReadOnly tools change nothing by being called: they need no approval and
	// may run in parallel with each other.
	ReadOnly bool
	// Fetches: the tool only fetches something from outside. The request leaves the machine,
	// so its calls still need approval.
	Fetches bool
	// Edits: the tool changes files of the world and nothing else.
	Edits bool
	// Command names the argument that is a shell's command line, Network the one that requests
	// the network; empty if there is none. Rules about commands examine the first; the second
	// is a question of its own.
	Command, Network string
	// Delegates: everything a call does is decided on elsewhere, one thing at a time; it needs
	// no approval of its own unless a rule names it.
	Delegates bool
	// Ordered: a call's effect depends on earlier calls of the same reply; they run in order
	// even if all only read.
	Ordered bool
	// Rewinds: a call may take the agent back to an earlier point. It has a guard of its own,
	// calls after it do not count as repeated, and no subagent is offered it.
	Rewinds bool
	// Repeats: the same call may be right again in the same world.
	Repeats bool
	// Silent: a result shows nothing that existed before the call, so it is not evidence.
	Silent bool
}

// Looks reports whether the tool changes nothing here: a read-only agent is offered it.
func (s Spec) Looks() bool { return s.ReadOnly || s.Fetches }

// Tool is one thing the agent can do. Implementations keep no state between
// calls and are safe for concurrent use.
type Tool interface {
	// Spec is constant and cheap.
	Spec() Spec
	// Call runs the tool with arguments that Registry.Validate has accepted. The error is for
	// internal failures (ctx ended, the operation stream could not be written); whatever the
	// model can act on is a Result with IsError. If ctx ended while a command ran, the Result
	// beside the error describes what happened until then.
	Call(ctx context.Context, env *Env, args json.RawMessage) (Result, error)
}

// Env is the environment of a call. One Env may serve concurrent calls if its functions do.
type Env struct {
	// Call is the call's id.
	Call string
	// Root is the world; every file tool works through it.
	Root *os.Root
	// Dir is the world's absolute path: where commands run, and the base of absolute paths.
	Dir string
	// Beside are directories beside the world that commands may write, in which its files may
	// have other names (hard links).
	Beside []string
	// Started is called when a process is about to begin, and must return before it does; an
	// error prevents it. May be nil.
	Started func(op.ToolStarted) error
	// Keep records a part of a command's output, which begins with its byte from, and returns
	// the operation's number; recall opens it. Parts count from 1. nil: nothing can be opened
	// again.
	Keep func(part int, from int64, text string) (uint64, error)
	// Timeline is the task's timeline; nil outside a task.
	Timeline Timeline
	// Jobs are the task's background commands; nil: none can be started.
	Jobs Jobs
	// Ask asks the user a question and records the answer as their words; false: no answer.
	// nil: there is no user.
	Ask func(ctx context.Context, question string) (answer string, ok bool, err error)
	// Progress shows a user the progress of a long call; may be nil.
	Progress func(text string)
	// Output receives what a running command prints, redacted; may be nil.
	Output func(p []byte)
	// Sandbox confines commands; nil: nothing does.
	Sandbox *guard.Sandbox
	// Redactor finds the secrets in a call's output; nil finds none. See Redaction.
	Redactor *redact.Redactor
}

// Timeline is a call's interface to its task.
type Timeline interface {
	// CheckJump returns why a jump to step `to` cannot be scheduled. The error, shown to the
	// model, names the possible steps.
	CheckJump(to int) error
	// Recall searches the knowledge cards, or opens an operation. The error is shown to the
	// model.
	Recall(ctx context.Context, what Memory) (string, error)
}

// Memory selects what a call recalls: cards that answer Query, or, if Op is above zero, that
// operation's text from byte From on.
type Memory struct {
	Query string
	Op    uint64
	From  int
}

// OutsideTask is the format of the result of a tool that needs a task and has none, for its name.
const OutsideTask = "%s was not run: this call is not part of a task, there is no timeline."

// Result is what a call returns.
type Result struct {
	// Text is shown to the model.
	Text string
	// IsError: the call did not do what was asked.
	IsError bool
	// Exit is the exit code if a process ran: 128+n for signal n.
	Exit *int
	// Stdout and Stderr are a process's separate outputs, shortened like Text.
	Stdout, Stderr string
	// Cut counts the bytes of output that Text leaves out.
	Cut int64
	// Kept are the operations that Env.Keep made of the output.
	Kept []uint64
	// Secrets are the values of markers in the texts, for restoring them.
	Secrets []redact.Found
	// Reads and Writes are paths relative to the world, slash-separated, with symbolic links
	// resolved. They are unknown for a command.
	Reads, Writes []string
	// Network: the tool itself brought text from the network. It is not set for commands,
	// whose actions are unknown.
	Network bool
	// Isolated: a command ran in a sandbox without a network.
	Isolated bool
	// Parts are images and other bytes; Text names each at its place.
	Parts []op.Part
	// Jump requests a jump when all calls of the reply are recorded.
	Jump *op.JumpRequested
	// Record are operations that the call makes. They are recorded in one write with its result.
	Record []op.Body
	// Display is a short line about the result for users, may be empty.
	Display string
}

// Errorf returns an error result.
func Errorf(format string, args ...any) Result {
	r := Textf(format, args...)
	r.IsError = true
	return r
}

// FromNetwork returns a result that is marked as text from the network.
func (r Result) FromNetwork() Result {
	r.Network = true
	return r
}

// Textf returns a plain result.
func Textf(format string, args ...any) Result {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	return Result{Text: text}
}
