// Package reflect asks the Reflect-Agent: a model that examines the record of an agent in a
// loop, and proposes what to do differently. It reads the record and the cards and changes nothing.
package reflect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
)

// Limits of one reflection.
const (
	maxLookups     = 8 // look-ups; further ones are refused
	maxRequests    = 12
	requestTimeout = 3 * time.Minute // of each request
	maxRepairs     = 1               // repeated requests after an unusable answer
	maxError       = 600             // bytes of a failed reflection's error that are recorded
)

// record is what the Reflect-Agent may read. Its errors are shown to the model.
type record interface {
	// Outline lists steps in the order of their ids, from id `from` on.
	Outline(from int) string
	// Open returns an operation's text from byte `from` on, quoted and limited.
	Open(seq uint64, from int) (string, error)
	// Cards searches the knowledge cards.
	Cards(ctx context.Context, query string) (string, error)
}

// Agent is the Reflect-Agent of a task.
type Agent struct {
	ledger *journal.Ledger
	memory *memory.Memory
	model  model.Model // nil: none is configured
}

// New returns the Reflect-Agent of a task. m answers as the agent; nil: there is none.
func New(l *journal.Ledger, mem *memory.Memory, m model.Model) *Agent { return &Agent{l, mem, m} }

// Reflect asks about the pending jump, or about the goal whose checks get no better, and records the result. A
// reflection that a crash or an interruption cut short is discarded and asked again. waitAfter returns the wait after
// a fault of the model, nil if it is not to be asked again.
func (a *Agent) Reflect(ctx, keep context.Context, act state.Action, waitAfter func(*model.Fault) *op.Wait) error {
	st := a.ledger.State()
	r := request{Task: a.ledger.ID, Goal: st.Said.Request, To: act.Step, Turn: st.Totals.Reflections}
	by := ""
	if act.Reason == op.ByGoal {
		by, r.Jumps, r.Checks, r.Reasons = op.ByGoal, max(st.Goal.Stale, st.Goal.Unmet), checks(st), leftPaths(st)
	} else {
		p := st.Jump.Pending
		r.To, r.Jumps = p.To, len(st.Jump.Backward(p.To))
		reasons, err := a.jumpReasons(p.To)
		if err != nil {
			return err
		}
		r.Reasons = append(reasons, p.Reason)
	}
	if a.model == nil {
		return a.ledger.Record(keep, &op.ReflectFailed{To: r.To, By: by, Why: "no model is configured"})
	}
	start := a.ledger.Now()
	asked := &op.ReflectAsked{To: r.To, By: by, Jumps: r.Jumps, Model: a.model.Name()}
	if err := a.ledger.Record(keep, asked); err != nil {
		return err
	}
	r.Outline = notice.Outline(st, max(0, st.Steps.Next()-notice.MaxOutlined))
	res, err := ask(ctx, a.model, a, r)
	took := a.ledger.Now().Sub(start).Milliseconds()
	if err != nil {
		if ctx.Err() != nil {
			return nil // interrupted: the jump is dropped with the turn
		}
		why := err.Error()
		if f, ok := errors.AsType[*model.Fault](err); ok {
			why = f.Error() // without its wrapping
			if wait := waitAfter(f); wait != nil {
				f = a.ledger.Journal.RedactFault(f)
				return a.ledger.Record(keep,
					&op.ModelFailed{Error: f.Error(), Status: f.Status, Tries: max(f.Tries, 1), Wait: wait})
			}
		}
		return a.ledger.Record(keep, &op.ReflectFailed{
			To: r.To, By: by, Why: quote.OneLine(why, maxError),
			Looked: res.Looked, Calls: res.Calls, Usage: res.Usage, Millis: took,
		})
	}
	s := res.Strategy
	return a.ledger.Record(keep, &op.StrategyGiven{
		To: r.To, By: by, Diagnosis: s.Diagnosis, Abandon: s.Abandon, Plan: s.Plan, Question: s.Question,
		Text: s.Text(r), Looked: res.Looked, Calls: res.Calls, Usage: res.Usage, Millis: took,
	})
}

// jumpReasons returns the reasons of the agent's jumps back to a step, oldest first, as many
// as the loop guard counts. It reads only those operations.
func (a *Agent) jumpReasons(to int) ([]string, error) {
	var out []string
	jumps := a.ledger.State().Jump.Backward(to)
	for _, seq := range jumps[max(0, len(jumps)-state.MaxBackwardJumps):] {
		o, err := a.ledger.Op(seq)
		if err != nil {
			return nil, fmt.Errorf("read the reasons of jumps: %w", err)
		}
		out = append(out, op.ReasonOf(o.Body))
	}
	return out, nil
}

// maxChecks is how many runs of the goal's checks are shown, the newest.
const maxChecks = 30

// checks shows how the runs of the goal's checks went, oldest first.
func checks(st *state.State) []string {
	line, text := st.Goal.Curve()
	out := []string{"the check: " + strings.Join(st.Goal.Until, ", then "), line + " " + text}
	for _, run := range st.Goal.Runs[max(0, len(st.Goal.Runs)-maxChecks):] {
		out = append(out, fmt.Sprintf("step %d (op %d): %s", run.Step, run.Seq, run.Rating))
	}
	return out
}

// leftPaths lists the paths that the task has left, oldest first, with the reasons.
func leftPaths(st *state.State) (out []string) {
	for id := range st.Steps.Next() {
		s := st.Steps.At(id)
		if s.LeftBy != "" && st.Steps.At(s.Parent).LeftBy != s.LeftBy && !st.Steps.OnPath(id, st.Current) {
			out = append(out, fmt.Sprintf("from step %d on: %s", id, s.LeftBy))
		}
	}
	return out
}

func (a *Agent) Outline(from int) string { return notice.Outline(a.ledger.State(), from) }

func (a *Agent) Open(seq uint64, from int) (string, error) { return a.memory.Reopen(seq, from) }

func (a *Agent) Cards(ctx context.Context, query string) (string, error) {
	text, _, err := a.memory.Query(ctx, query)
	return text, err
}

// request describes the loop.
type request struct {
	Task    string
	Goal    string   // the user's request
	To      int      // the step the agent keeps going back to
	Jumps   int      // how often it did
	Checks  []string // how the goal's checks went, which got no better in Jumps runs; nil: the loop guard asks
	Reasons []string // why it went back, oldest first; with Checks the paths that were left
	Outline string   // the latest steps
	Turn    int      // model replies of earlier reflections; see model.Request.Turn
}

// result is the outcome of a reflection, including one that failed.
type result struct {
	Strategy Strategy
	Looked   []op.Call
	Calls    int // requests that were answered
	Usage    op.Usage
}

// errUnusable is returned if the model's answers contained no strategy, even on repetition.
var errUnusable = errors.New("the answer is not a strategy")

// ask runs one reflection. An error is the model's fault, errUnusable, or ctx's; the result then
// holds its cost.
func ask(ctx context.Context, m model.Model, src record, r request) (result, error) {
	var res result
	messages := []model.Message{
		{Role: model.RoleSystem, Text: consult.Fill(systemPrompt, "schema", strings.TrimSpace(schemaText))},
		{Role: model.RoleUser, Text: askText(r)},
	}
	repairs := 0
	for res.Calls < maxRequests {
		reply, err := complete(ctx, m, r, res.Calls, messages)
		if err != nil {
			return res, fmt.Errorf("ask the Reflect-Agent: %w", err)
		}
		res.Calls++
		res.Usage = res.Usage.Plus(reply.Usage)
		messages = append(messages, reply.Message())
		if len(reply.Calls) > 0 {
			// Each call gets a result, also one too many: providers refuse a history without it.
			for _, c := range reply.Calls {
				text := fmt.Sprintf("Not looked up: %d look-ups are the most. Reply with the JSON object.", maxLookups)
				if len(res.Looked) < maxLookups {
					res.Looked = append(res.Looked, c)
					text = lookUp(ctx, src, c)
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
			return res, fmt.Errorf("%w: %w", errUnusable, err)
		}
		repair := consult.Fill(repairPrompt, "problem", clip(err.Error(), maxProblemRunes))
		messages = append(messages, model.Message{Role: model.RoleUser, Text: repair})
	}
	return res, fmt.Errorf("%w: %d replies and none was one", errUnusable, maxRequests)
}

func complete(ctx context.Context, m model.Model, r request, calls int, messages []model.Message) (model.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return m.Ask(ctx, model.Request{
		Purpose: model.PurposeReflect, Turn: r.Turn + calls, Messages: messages, Tools: tools(),
	}, nil)
}

func tools() []model.ToolSpec {
	schema := func(required, properties string) json.RawMessage {
		return fmt.Appendf(nil, `{"type":"object","properties":{%s},"required":[%q]}`, properties, required)
	}
	const from = `"from":{"type":"integer","minimum":0}`
	return []model.ToolSpec{
		{Name: "outline", Schema: schema("from", from), Description: "List the steps of the task from one on."},
		{Name: "open_op", Schema: schema("op", `"op":{"type":"integer","minimum":1},`+from),
			Description: "Open one operation of the record, such as a tool's result. A long one comes in parts."},
		{Name: "search_cards", Schema: schema("query", `"query":{"type":"string"}`),
			Description: "Search the notes that earlier tasks left."},
	}
}

// lookUp answers one look-up; if it fails, with the reason.
func lookUp(ctx context.Context, src record, c op.Call) string {
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
