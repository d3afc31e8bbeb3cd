// Package reflect asks the Reflect-Agent: a model that examines the record of an agent in a
// loop, and proposes what to do differently. It reads through a [Source] and changes nothing.
package reflect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// Limits of one reflection.
const (
	MaxLooks       = 8 // look-ups; further ones are refused
	MaxRequests    = 12
	requestTimeout = 3 * time.Minute // of each request
	maxRepairs     = 1               // repeated requests after an unusable answer
)

// Source is what the Reflect-Agent may read. Its errors are shown to the model.
type Source interface {
	// Outline lists steps in the order of their ids, from id `from` on.
	Outline(from int) string
	// Open returns an operation's text from byte `from` on, quoted and limited.
	Open(seq uint64, from int) (string, error)
	// Cards searches the knowledge cards.
	Cards(ctx context.Context, query string) (string, error)
}

// Request describes the loop.
type Request struct {
	Task    string
	Goal    string   // the user's request
	To      int      // the step the agent keeps going back to
	Jumps   int      // how often it did
	Reasons []string // why, oldest first
	Outline string   // the latest steps
	Turn    int      // model replies of earlier reflections; see model.Request.Turn
}

// Result is the outcome of a reflection, including one that failed.
type Result struct {
	Strategy Strategy
	Looked   []op.Call
	Calls    int // requests that were answered
	Usage    op.Usage
}

// ErrUnusable is returned if the model's answers contained no strategy, even on repetition.
var ErrUnusable = errors.New("the answer is not a strategy")

// Ask runs one reflection. An error is the model's fault, ErrUnusable, or ctx's; Result then
// holds its cost.
func Ask(ctx context.Context, m model.Model, src Source, r Request) (Result, error) {
	var res Result
	messages := []model.Message{
		{Role: model.RoleSystem, Text: systemText()},
		{Role: model.RoleUser, Text: askText(r)},
	}
	repairs := 0
	for res.Calls < MaxRequests {
		reply, err := ask(ctx, m, r, res.Calls, messages)
		if err != nil {
			return res, fmt.Errorf("ask the Reflect-Agent: %w", err)
		}
		res.Calls++
		res.Usage = res.Usage.Plus(reply.Usage)
		messages = append(messages, reply.Message())
		if len(reply.Calls) > 0 {
			for _, c := range reply.Calls {
				text := fmt.Sprintf("Not looked up: %d look-ups is all there are. Reply with the JSON object.", MaxLooks)
				if len(res.Looked) < MaxLooks {
					res.Looked = append(res.Looked, c)
					text = look(ctx, src, c)
				}
				messages = append(messages, model.Message{Role: model.RoleTool, CallID: c.ID, Name: c.Name, Text: text})
			}
			continue
		}
		s, err := parse(reply.Text)
		if err == nil {
			res.Strategy = s
			return res, nil
		}
		if repairs++; repairs > maxRepairs {
			return res, fmt.Errorf("%w: %w", ErrUnusable, err)
		}
		messages = append(messages, model.Message{Role: model.RoleUser, Text: repairText(err)})
	}
	return res, fmt.Errorf("%w: %d replies and none was one", ErrUnusable, MaxRequests)
}

func ask(ctx context.Context, m model.Model, r Request, calls int, messages []model.Message) (model.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return m.Ask(ctx, model.Request{Purpose: model.PurposeReflect, Turn: r.Turn + calls, Messages: messages, Tools: tools()}, nil)
}

// tools are the Reflect-Agent's tools.
func tools() []model.ToolSpec {
	return []model.ToolSpec{
		{Name: "outline", Description: "List the steps of the task from one on.",
			Schema: json.RawMessage(`{"type":"object","properties":{"from":{"type":"integer","minimum":0}},"required":["from"]}`)},
		{Name: "open_op", Description: "Open one operation of the record, such as a tool's result. A long one comes in parts.",
			Schema: json.RawMessage(`{"type":"object","properties":{"op":{"type":"integer","minimum":1},"from":{"type":"integer","minimum":0}},"required":["op"]}`)},
		{Name: "search_cards", Description: "Search the notes that earlier tasks left.",
			Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`)},
	}
}

// look answers one look-up; if it fails, with the reason.
func look(ctx context.Context, src Source, c op.Call) string {
	var args struct {
		From  int    `json:"from"`
		Op    uint64 `json:"op"`
		Query string `json:"query"`
	}
	if err := json.Unmarshal([]byte(c.Args), &args); err != nil {
		return fmt.Sprintf("Not looked up: the arguments are not what %s takes: %v.", c.Name, err)
	}
	if args.From < 0 {
		return "Not looked up: from must not be negative."
	}
	var text string
	var err error
	switch c.Name {
	case "outline":
		text = src.Outline(args.From)
	case "open_op":
		text, err = src.Open(args.Op, args.From)
	case "search_cards":
		text, err = src.Cards(ctx, args.Query)
	default:
		return fmt.Sprintf("There is no %s. You may look with outline, open_op and search_cards.", c.Name)
	}
	if err != nil {
		return fmt.Sprintf("Not found: %v.", err)
	}
	return text
}
