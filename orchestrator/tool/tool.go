// Package tool is what the agent acts with: the Tool interface, the registry
// that checks a call before it runs, and the path rules every file tool obeys.
// The tools themselves live in the folders below; package builtin lists them.
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
	// Name is what the model calls it by: 1 to 64 letters, digits, _ or -.
	Name string
	// Description tells the model what it does and what its limits are.
	Description string
	// Schema is the JSON Schema of the arguments, of type object.
	Schema *jsonschema.Schema
	// ReadOnly tools change nothing by being called: they need no approval and
	// may run in parallel with each other.
	ReadOnly bool
	// Fetches says that the tool only brings something from outside. What is asked
	// for leaves the machine, so its calls need approval all the same.
	Fetches bool
	// Edits says that the tool changes files of the world and nothing else.
	Edits bool
	// Command names the argument that is a shell's command line, Network the one
	// that asks for the network; empty where there is none. Rules about commands
	// look at the first; the second is a question of its own.
	Command, Network string
	// Runs says that the tool runs a program of somebody's choice: it is held in
	// by the task's sandbox, as commands are.
	Runs bool
	// Delegates says that all a call does is decided on elsewhere, one thing at a
	// time: it needs no approval of its own unless a rule names it.
	Delegates bool
	// Ordered says that what a call does depends on the calls before it in the
	// same reply: they are run in order even where all only read.
	Ordered bool
	// Rewinds says that a call may take the agent back to where it was: it has a
	// guard of its own, what is called after it is not called anew, and no subagent
	// is offered it.
	Rewinds bool
	// Repeats says that the same call may be right again in the same world.
	Repeats bool
	// Silent says that a result shows nothing that was there before the call: it
	// is no evidence of anything.
	Silent bool
}

// Looks reports whether the tool changes nothing here: an agent that only looks
// is offered it.
func (s Spec) Looks() bool { return s.ReadOnly || s.Fetches }

// Tool is one thing the agent can do. Implementations keep no state between
// calls and are safe for concurrent use.
type Tool interface {
	// Spec is constant and cheap.
	Spec() Spec
	// Call runs the tool with arguments that Registry.Validate has accepted.
	// The error is for the program's own failures (ctx ended, the operation
	// stream could not be written); whatever the model can act on is a Result
	// with IsError. When ctx ended while a command ran, the Result beside the
	// error says how far it came.
	Call(ctx context.Context, env *Env, args json.RawMessage) (Result, error)
}

// Env is what a call may touch. One Env may serve concurrent calls if its
// functions do.
type Env struct {
	// Call is the call's id.
	Call string
	// Root is the world; every file tool works through it.
	Root *os.Root
	// Dir is the world's absolute path: where commands run, and what an
	// absolute path is understood relative to.
	Dir string
	// Beside are directories beside the world in which its files may have other
	// names (hard links): those that commands may write.
	Beside []string
	// Started is called when a process is about to begin, and must return
	// before it does; an error keeps it from running. May be nil.
	Started func(op.ToolStarted) error
	// Keep records a part of a command's output, which begins with its byte from,
	// and returns the operation it is; recall opens it. Parts count from 1. nil
	// where nothing can be opened again.
	Keep func(part int, from int64, text string) (uint64, error)
	// Timeline is the task's timeline; nil outside a task.
	Timeline Timeline
	// Mailbox is where D-Mails are sent from; nil outside a task.
	Mailbox Mailbox
	// Evidence is what the task has seen so far; nil outside a task.
	Evidence Evidence
	// Todos returns the agent's todo list; nil outside a task.
	Todos func() []op.Todo
	// Subagents are the agents that work can be handed to; nil where there are none.
	Subagents Subagents
	// Jobs are the task's background commands; nil outside a task.
	Jobs Jobs
	// Ask puts a question to the user and records the answer as their words;
	// false: there is none. nil: there is no user.
	Ask func(ctx context.Context, question string) (answer string, ok bool, err error)
	// Progress shows a user how far a long call has come; may be nil.
	Progress func(text string)
	// Output sees what a running command prints, redacted; may be nil.
	Output func(p []byte)
	// Sandbox holds commands in; nil: nothing does.
	Sandbox *guard.Sandbox
	// Environ is the environment commands get, before secrets are removed;
	// nil means the program's own.
	Environ []string
	// Redactor finds the secrets in what a call brings; nil finds none. See
	// Redaction.
	Redactor *redact.Redactor
}

// Timeline is what a call may ask of the task it is part of.
type Timeline interface {
	// CheckJump says whether a jump to step `to` can be scheduled. The error is
	// shown to the model and names the steps that can.
	CheckJump(to int) error
	// Recall searches the knowledge cards, or opens an operation again. The
	// error is shown to the model.
	Recall(ctx context.Context, what Memory) (string, error)
}

// Evidence is what a call may cite of the task it is part of.
type Evidence interface {
	// Cite checks that operations of the task can be cited and returns the one
	// that is the result of a call that succeeded and only looked. The error is
	// shown to the model, and names what could be cited.
	Cite(ops []uint64) (look uint64, err error)
}

// Memory names what a call wants to remember: cards that answer Query, or,
// when Op is above zero, that operation's text from byte From on.
type Memory struct {
	Query string
	Op    uint64
	From  int
}

// Result is what a call returns.
type Result struct {
	// Text is what the model is shown.
	Text string
	// IsError says that the call did not do what was asked.
	IsError bool
	// Exit is the exit code where a process ran: 128+n for signal n.
	Exit *int
	// Stdout and Stderr are a process's outputs apart, shortened like Text.
	Stdout, Stderr string
	// Cut counts the bytes of output that Text leaves out.
	Cut int64
	// Kept are the operations that Env.Keep made of the output.
	Kept []uint64
	// Secrets are those that markers stand for in the texts, for who can put
	// them back.
	Secrets []redact.Found
	// Reads and Writes are paths relative to the world, slash-separated, with
	// symbolic links resolved. For a command they are not known.
	Reads, Writes []string
	// Network says that the tool itself brought text from the network. It is
	// not set for commands: what a command did is not known.
	Network bool
	// Isolated says that a command ran in a sandbox without a network.
	Isolated bool
	// Parts are images and other bytes; Text names each at its place.
	Parts []op.Part
	// Jump asks for a jump when all calls of the reply are recorded.
	Jump *op.JumpRequested
	// Research is to be recorded with the call.
	Research *op.ResearchDone
	// Todos is the todo list that the call sets.
	Todos *op.TodosSet
	// Display is a short line about the result for people, may be empty.
	Display string
}

// Errorf is an error result.
func Errorf(format string, args ...any) Result {
	r := Textf(format, args...)
	r.IsError = true
	return r
}

// Textf is a plain result.
func Textf(format string, args ...any) Result {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	return Result{Text: text}
}
