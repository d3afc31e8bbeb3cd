package openai

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// assembly builds a reply from its chunks.
type assembly struct {
	on        func(model.Delta)
	sieve     sieve
	text      strings.Builder // passed on
	reasoning strings.Builder // passed on
	extra     extra
	parts     extra // its field content: the content as a list of parts, if it came as one
	odd       bool  // some part is not text
	calls     []*partialCall
	last      *partialCall // the one the latest piece belonged to
	finish    string
	usage     *op.Usage
	model     string
	repairs   []string
	more      bool // there were more than model.MaxCalls calls
	over      bool // nothing more is expected
}

// partialCall is a tool call whose pieces are still arriving.
type partialCall struct {
	index int // the provider's, -1 if it sent none
	id    string
	name  string
	args  strings.Builder
	extra extra
}

func newAssembly(on func(model.Delta)) *assembly {
	if on == nil {
		on = func(model.Delta) {}
	}
	return &assembly{on: on}
}

func (a *assembly) add(c chunk) error {
	if c.model != "" {
		a.model = c.model
	}
	if c.usage != nil {
		a.usage = c.usage
		// The chunk that has usage and no choice is the last one.
		a.over = a.finish != "" && len(c.choices) == 0
	}
	for _, choice := range c.choices {
		if choice.index != 0 {
			continue // only one choice is requested
		}
		if err := a.addChoice(choice); err != nil {
			return err
		}
	}
	return nil
}

func (a *assembly) addChoice(c choice) error {
	d := c.delta
	text, thinking, plain := contentOf(d["content"])
	a.addContent(d["content"], text, plain)
	thinking = cmp.Or(thinking, thoughtOf(d))
	// A refusal is shown as the model's text.
	text, inText := a.sieve.add(text + stringOf(d["refusal"]))
	a.pass(model.Delta{Text: text, Reasoning: thinking + inText})
	a.extra.add(d, "role", "content", "refusal", "tool_calls", "function_call")
	for i, raw := range listOf(d["tool_calls"]) {
		// Another name without an index is another call of a whole reply.
		named := present(objectOf(objectOf(raw)["function"])["name"])
		if piece := objectOf(raw); piece != nil {
			a.addCall(piece, i > 0 && named && !present(piece["index"]))
		}
	}
	if f := objectOf(d["function_call"]); f != nil { // the form before tool calls
		a.addCall(object{"index": json.RawMessage("0"), "function": d["function_call"]}, false)
	}
	switch c.finish {
	case "", "null":
	case "error": // OpenRouter: the provider behind it failed
		return &model.Fault{Kind: model.FaultHTTP, Retryable: true,
			Err: errors.New("the provider ended the reply with an error")}
	case "model_context_window_exceeded": // Zhipu
		return &model.Fault{Kind: model.FaultOverflow,
			Err: errors.New("the reply reached the end of the context window")}
	default:
		a.finish = c.finish
	}
	return nil
}

func (a *assembly) pass(d model.Delta) {
	if d == (model.Delta{}) {
		return
	}
	a.text.WriteString(d.Text)
	a.reasoning.WriteString(d.Reasoning)
	a.on(d)
}

// repair notes that something odd was repaired.
func (a *assembly) repair(name string) {
	if name != "" && !slices.Contains(a.repairs, name) {
		a.repairs = append(a.repairs, name)
	}
}

// addContent keeps a content that comes as a list of parts. Unless all are text, the list goes back.
func (a *assembly) addContent(raw json.RawMessage, text string, plain bool) {
	part := func(text string) {
		if list, err := json.Marshal([]map[string]string{{"type": "text", "text": text}}); err == nil && text != "" {
			a.parts.add(object{"content": list})
		}
	}
	a.odd = a.odd || !plain
	switch {
	case present(raw) && raw[0] != '"':
		a.repair(op.RepairContentParts)
		if a.parts == nil {
			part(a.sieve.raw.String())
		}
		if list, err := json.Marshal(listOf(raw)); err == nil {
			a.parts.add(object{"content": list})
		}
	case a.parts != nil:
		part(text)
	}
}

// addCall finds the call a piece belongs to. Pieces name it by index; without one (Gemini), or
// if every call of a reply has the same one, a new id begins a new call. After the first
// excess call all calls are dropped: none runs. other: it cannot belong to the latest call.
func (a *assembly) addCall(piece object, other bool) {
	if a.more {
		return
	}
	index, ok := numberOf(piece["index"])
	if !ok {
		index = -1
	}
	id, function := wordOf(piece["id"]), objectOf(piece["function"])
	name := stringOf(function["name"])
	c := a.find(index)
	switch {
	case c == nil, other,
		id != "" && c.id != "" && id != c.id,
		index < 0 && id == "" && name != "":
		if len(a.calls) >= model.MaxCalls {
			a.more = true
			return
		}
		c = &partialCall{index: index}
		a.calls = append(a.calls, c)
	}
	a.last = c
	if id != "" {
		c.id = id
	}
	// A name may come in pieces, or again with every piece.
	if name != c.name {
		c.name += name
	}
	if raw := function["arguments"]; present(raw) && raw[0] != '"' {
		a.repair(op.RepairArgsObject)
	}
	c.args.WriteString(argsOf(function["arguments"]))
	c.extra.add(piece, "index", "id", "type", "function")
	delete(function, "name")
	delete(function, "arguments")
	if more, err := json.Marshal(function); err == nil {
		c.extra.add(object{"function": more})
	}
}

// find returns the latest call with that index; without one, the latest call.
func (a *assembly) find(index int) *partialCall {
	if index < 0 {
		return a.last
	}
	for _, c := range slices.Backward(a.calls) {
		if c.index == index {
			return c
		}
	}
	return nil
}

func (a *assembly) reply(r model.Request) model.Reply {
	read := reading{text: a.sieve.raw.String()}
	if a.parts == nil {
		tools := r.Tools
		if len(a.calls) > 0 { // the server reads its model's calls: what looks like one in the text is text
			tools = nil
		}
		read = readMarkup(read.text, tools)
	}
	for _, name := range read.repairs {
		a.repair(name)
	}
	a.complete(read)
	out := model.Reply{
		Text:      a.text.String(),
		Reasoning: a.reasoning.String(),
		Calls:     append(a.finished(r), read.calls...),
		MoreCalls: a.more,
		Finish:    a.finish,
		Model:     a.model,
		Extra:     a.extra.fields(),
	}
	out.Repairs = a.repairs // after finished, which adds to them
	if a.odd {
		if out.Extra == nil {
			out.Extra = make(map[string]json.RawMessage)
		}
		maps.Copy(out.Extra, a.parts.fields())
	}
	if a.usage != nil && *a.usage != (op.Usage{}) {
		out.Usage = *a.usage
	} else {
		out.Usage = model.EstimateUsage(r, out)
	}
	return out
}

// endsWell reports whether a reply without a finish reason is whole as far as can be seen, and gives it one.
// The first text of an endpoint that ends so is taken for a broken one, and asked for again.
func (a *assembly) endsWell(before *atomic.Int32) bool {
	finish := "stop"
	for _, c := range a.calls {
		finish = "tool_calls"
		if args := strings.TrimSpace(c.args.String()); args != "" && !json.Valid([]byte(args)) {
			return false
		}
	}
	if len(a.calls) == 0 && (strings.TrimSpace(a.sieve.raw.String()) == "" || before.Add(1) == 1) {
		return false
	}
	a.finish = finish
	a.repair(op.RepairNoFinish)
	return true
}

// complete passes on what the sieve has held back, or the whole again if a part of it was no text.
func (a *assembly) complete(read reading) {
	thinking := a.reasoning.String()
	if !strings.HasSuffix(thinking, read.thinking) {
		thinking += read.thinking
	}
	text, ok := strings.CutPrefix(read.text, a.text.String())
	if more, same := strings.CutPrefix(thinking, a.reasoning.String()); ok && same {
		a.pass(model.Delta{Text: text, Reasoning: more})
		return
	}
	a.on(model.Delta{Restart: true})
	a.text.Reset()
	a.reasoning.Reset()
	a.pass(model.Delta{Text: read.text, Reasoning: thinking})
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
		if id == "" || len(id) > MaxIDBytes || taken[id] {
			a.repair(op.RepairCallID)
		}
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
		args, repair := repairArgs(args)
		a.repair(repair)
		out = append(out, op.Call{ID: id, Name: c.name, Args: args, Extra: c.extra.fields()})
	}
	return out
}
