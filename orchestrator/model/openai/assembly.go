package openai

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	gopenai "github.com/sashabaranov/go-openai"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// assembly builds a reply from its chunks.
type assembly struct {
	on        func(model.Delta)
	text      strings.Builder
	reasoning strings.Builder
	calls     []*partialCall
	last      *partialCall // the one the latest piece belonged to
	finish    string
	usage     *op.Usage
	model     string
	more      bool // there were more than model.MaxCalls calls
	over      bool // nothing more is expected
}

// partialCall is a tool call whose pieces are still arriving.
type partialCall struct {
	index int // the provider's, -1 if it sent none
	id    string
	name  string
	args  strings.Builder
}

func newAssembly(on func(model.Delta)) *assembly {
	if on == nil {
		on = func(model.Delta) {}
	}
	return &assembly{on: on}
}

// add applies one chunk and its `reasoning`.
func (a *assembly) add(chunk gopenai.ChatCompletionStreamResponse, reasoning string) error {
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	if chunk.Usage != nil {
		a.usage = usageOf(chunk.Usage)
		// The chunk that has usage and no choice is the last one.
		a.over = a.finish != "" && len(chunk.Choices) == 0
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue // only one choice is requested
		}
		if err := a.addChoice(choice, reasoning); err != nil {
			return err
		}
	}
	return nil
}

func (a *assembly) addChoice(choice gopenai.ChatCompletionStreamChoice, reasoning string) error {
	d := choice.Delta
	if d.ReasoningContent != "" {
		reasoning = d.ReasoningContent // some send the same under both names
	}
	// A refusal is shown as the model's text.
	if piece := (model.Delta{Text: d.Content + d.Refusal, Reasoning: reasoning}); piece != (model.Delta{}) {
		a.text.WriteString(piece.Text)
		a.reasoning.WriteString(piece.Reasoning)
		a.on(piece)
	}
	pieces := d.ToolCalls
	if d.FunctionCall != nil { // the form before tool calls
		zero := 0
		pieces = append(pieces, gopenai.ToolCall{Index: &zero, Function: *d.FunctionCall})
	}
	for _, piece := range pieces {
		a.addCall(piece)
	}
	switch finish := string(choice.FinishReason); finish {
	case "", string(gopenai.FinishReasonNull):
	case "error": // OpenRouter: the provider behind it failed
		return &model.Fault{Kind: model.FaultHTTP, Retryable: true, Err: errors.New("the provider ended the reply with an error")}
	case "model_context_window_exceeded": // Zhipu
		return &model.Fault{Kind: model.FaultOverflow, Err: errors.New("the reply reached the end of the context window")}
	default:
		a.finish = finish
	}
	return nil
}

// addCall finds the call a piece belongs to. Pieces name it by index; without one (Gemini), or
// if every call of a reply has the same one, a new id begins a new call. After the first
// excess call all calls are dropped: none runs.
func (a *assembly) addCall(piece gopenai.ToolCall) {
	if a.more {
		return
	}
	index := -1
	if piece.Index != nil {
		index = *piece.Index
	}
	c := a.find(index)
	switch {
	case c == nil,
		piece.ID != "" && c.id != "" && piece.ID != c.id,
		index < 0 && piece.ID == "" && piece.Function.Name != "":
		if len(a.calls) >= model.MaxCalls {
			a.more = true
			return
		}
		c = &partialCall{index: index}
		a.calls = append(a.calls, c)
	}
	a.last = c
	if piece.ID != "" {
		c.id = piece.ID
	}
	// A name may come in pieces, or again with every piece.
	if piece.Function.Name != c.name {
		c.name += piece.Function.Name
	}
	c.args.WriteString(piece.Function.Arguments)
}

// find returns the latest call with that index; without one, the latest call.
func (a *assembly) find(index int) *partialCall {
	if index < 0 {
		return a.last
	}
	for i := len(a.calls) - 1; i >= 0; i-- {
		if a.calls[i].index == index {
			return a.calls[i]
		}
	}
	return nil
}

// reply returns the complete reply to r.
func (a *assembly) reply(r model.Request) model.Reply {
	out := model.Reply{
		Text:      a.text.String(),
		Reasoning: a.reasoning.String(),
		Calls:     a.finished(r),
		MoreCalls: a.more,
		Finish:    a.finish,
		Model:     a.model,
	}
	if a.usage != nil && *a.usage != (op.Usage{}) {
		out.Usage = *a.usage
	} else {
		out.Usage = model.EstimateUsage(r, out)
	}
	return out
}

// finished returns the calls with ids that are unique in the reply and among the calls the
// request shows: some servers count from call_0 in every reply, some send no id at all. A
// repeated id gets the first free of the endings _2, _3, …; a missing one, or one longer than
// MaxIDBytes, becomes random, so that it cannot equal one in a part of the history the request
// no longer shows.
func (a *assembly) finished(r model.Request) []op.Call {
	if len(a.calls) == 0 {
		return nil
	}
	taken := make(map[string]bool)
	for _, m := range r.Messages {
		for _, c := range m.Calls {
			taken[c.ID] = true
		}
	}
	out := make([]op.Call, 0, len(a.calls))
	for _, c := range a.calls {
		id := c.id
		if id == "" || len(id) > MaxIDBytes {
			id = "call_" + rand.Text()
		}
		for n := 2; taken[id]; n++ {
			id = fmt.Sprintf("%s_%d", c.id, n)
		}
		taken[id] = true
		args := c.args.String()
		if strings.TrimSpace(args) == "" {
			args = "{}" // a usual form of a call without arguments
		}
		out = append(out, op.Call{ID: id, Name: c.name, Args: args})
	}
	return out
}

func usageOf(u *gopenai.Usage) *op.Usage {
	out := &op.Usage{Prompt: u.PromptTokens, Completion: u.CompletionTokens}
	if d := u.PromptTokensDetails; d != nil {
		out.Cached = d.CachedTokens
	}
	if d := u.CompletionTokensDetails; d != nil {
		out.Reasoning = d.ReasoningTokens
	}
	return out
}
