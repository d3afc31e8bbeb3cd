// Package model is the interface to language models: one request in, one complete reply out,
// with the pieces passed to a callback. It depends on no provider; the implementations are in the
// subpackages openai (any OpenAI-compatible endpoint) and script (a recording).
//
// A reply counts only if the provider stated why it ended, or that it is complete. Anything else is a [Fault], which
// holds the text that had arrived.
package model

import (
	"context"
	"encoding/json"

	"anamnesis/opstream/op"
)

type Role string

const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // the result of one call, named by CallID
)

// Message is one message of a chat. The whole program uses this type; a provider's types stay
// inside the provider's package.
type Message struct {
	Role      Role
	Text      string
	Reasoning string    // assistant only: thinking the provider showed
	Calls     []op.Call // assistant only
	CallID    string    // tool only: the call this answers
	Name      string    // tool only: the tool's name
	// Extra is what the provider Origin put beside its reply; assistant only. See op.ModelReplied.
	Extra  map[string]json.RawMessage `json:",omitempty"`
	Origin string                     `json:",omitempty"`
	// Parts are the images of a tool's result or of a user's words; the text names them. For a
	// model that takes no images, a line says so instead.
	Parts []op.Part `json:",omitempty"`
}

type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments; empty: an object without properties
}

const (
	PurposeStep    = "step"    // a turn of the agent loop
	PurposePass    = "pass"    // an anamnesis pass
	PurposeReflect = "reflect" // the Reflect-Agent
	PurposeProbe   = "probe"   // a question of the EAS probe
)

// Request is one question to a model. An implementation must not change it, nor keep any part
// of it after Ask has returned.
type Request struct {
	// Purpose is one of the Purpose constants; empty means PurposeStep.
	Purpose string
	// Agent is the name of the subagent that asks; empty: the task's own agent. Only scripts
	// read it.
	Agent string
	// Turn counts the replies of this purpose that the task has acknowledged. Only scripts
	// read it: a recording finds its position by it in another process.
	Turn int
	// Mark is the word in the task's marks. Only scripts read it: a recording is written
	// without it.
	Mark string
	// Last is the last call the task made, even if a compaction has removed it from Messages; nil if
	// there is none. Only scripts read it: its id says where a script with loops stands.
	Last *Past
	// Once: the caller repeats a failed request itself.
	Once     bool
	Messages []Message
	Tools    []ToolSpec
	// MaxTokens caps the reply, in the provider's tokens; 0: no cap.
	MaxTokens int
}

// Past is the last call of an earlier reply.
type Past struct {
	CallID string
	Result string
}

// MaxCalls is how many calls of one reply are read. If a reply has more, none runs.
const MaxCalls = 128

type Reply struct {
	Text      string
	Reasoning string
	// Calls are the tool calls in the model's order. Ids are never empty and
	// never repeat within the reply or a call in the request's messages.
	// Arguments are as the model wrote them and may be malformed JSON.
	// At most MaxCalls; MoreCalls reports that there were more.
	Calls     []op.Call
	MoreCalls bool
	// Finish is why the reply ended, never empty: usually stop, tool_calls, length or
	// content_filter, otherwise the provider's own word. Use Calls, not Finish, to learn
	// whether there are calls: providers differ.
	Finish string
	// Usage is the provider's count, or EstimateUsage if it reports none.
	Usage op.Usage
	// Model is the name the provider answered under; may be empty.
	Model string
	// Extra is what the provider put beside the text and the calls. It goes back with the reply as
	// Message.Extra to the model that states the same Origin.
	Extra  map[string]json.RawMessage
	Origin string
	// Repairs are the names of the oddities that were repaired, as op.Oddities lists them.
	Repairs []string
}

// Message returns the reply as a message of a later request.
func (r Reply) Message() Message {
	return Message{Role: RoleAssistant, Text: r.Text, Reasoning: r.Reasoning, Calls: r.Calls, Extra: r.Extra,
		Origin: r.Origin}
}

// Delta is a piece of a reply that is still arriving.
type Delta struct {
	Text      string
	Reasoning string
	// Restart reports that everything streamed so far for this request is void: the request is
	// repeated. Text and Reasoning are then empty.
	Restart bool
}

// Model answers requests. Implementations are safe for concurrent use.
type Model interface {
	// Ask sends r and returns the complete reply. If on is not nil, it is called with the
	// pieces in order, from the calling goroutine only and never after Ask returned; on
	// success they add up to Reply.Text and Reply.Reasoning. Every error is a *Fault, also if
	// ctx ends (then errors.Is with ctx's error holds).
	Ask(ctx context.Context, r Request, on func(Delta)) (Reply, error)
	// Name identifies the model for users and for the EAS table.
	Name() string
}

// bytesPerToken is the usual rule of thumb of four characters for English text and code.
// Counted in bytes of UTF-8 it is the same there, and closer for scripts whose characters cost
// a token or more each,
// https://help.openai.com/en/articles/4936856-what-are-tokens-and-how-to-count-them
const bytesPerToken = 4

// EstimateUsage estimates the usage of a reply from its length, one token for every four bytes
// begun, for providers that report none.
func EstimateUsage(r Request, reply Reply) op.Usage {
	sent := 0
	for _, m := range r.Messages {
		sent += len(m.Text) + callBytes(m.Calls) + extraBytes(m.Extra)
	}
	for _, t := range r.Tools {
		sent += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	thought := len(reply.Reasoning)
	got := len(reply.Text) + callBytes(reply.Calls) + thought
	return op.Usage{
		Prompt:     tokensOf(sent),
		Completion: tokensOf(got),
		Reasoning:  tokensOf(thought),
	}
}

func callBytes(calls []op.Call) int {
	n := 0
	for _, c := range calls {
		n += len(c.Name) + len(c.Args) + extraBytes(c.Extra)
	}
	return n
}

func extraBytes(extra map[string]json.RawMessage) int {
	n := 0
	for key, v := range extra {
		n += len(key) + len(v)
	}
	return n
}

func tokensOf(size int) int { return (size + bytesPerToken - 1) / bytesPerToken }
