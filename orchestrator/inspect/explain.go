package inspect

import (
	"errors"
	"fmt"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/state/projection"
	"anamnesis/orchestrator/taskdir"
)

// maxExplained is how much of a message's text an explanation quotes, in bytes.
const maxExplained = 100

// Explanation lists a task's context with the reasons.
type Explanation struct {
	Task     string             `json:"task"`
	Step     int                `json:"step"`            // the last step that had ended
	Op       uint64             `json:"op"`              // the last operation that was folded
	EAS      int                `json:"eas"`             // effective attention span, tokens
	Window   int                `json:"window"`          // of the model, tokens; 0: unknown
	Limit    int                `json:"limit"`           // tokens, with the tools', above which it is made smaller
	Tokens   int                `json:"tokens"`          // of the context, without the tools' descriptions
	Todos    []op.Todo          `json:"todos,omitempty"` // the agent's todo list
	Messages []ExplainedMessage `json:"messages"`
	Changes  []ExplainedChange  `json:"changes"` // what was masked, compacted or carried over, oldest first
}

// ExplainedMessage is one message of the context.
type ExplainedMessage struct {
	Role   model.Role      `json:"role"`
	Tokens int             `json:"tokens"`
	Parts  []ExplainedPart `json:"parts"` // what it is made of; more than one where user messages merge
}

// ExplainedPart is a message, or a part of one, with its origin.
type ExplainedPart struct {
	Op     uint64  `json:"op"`             // 0: of no operation, an unknown outcome
	Mark   uint64  `json:"mark,omitempty"` // the world.saved whose step mark ends it
	Kind   op.Kind `json:"kind"`
	Step   int     `json:"step"`
	Tokens int     `json:"tokens"`
	Text   string  `json:"text"` // its beginning, on one line
	// Why is the rule by which it is in this form; empty if it is simply what was said and
	// done.
	Why string `json:"why,omitempty"`
}

// ExplainedChange is one operation that changed what is in the context.
type ExplainedChange struct {
	Op    uint64     `json:"op"`
	Kind  op.Kind    `json:"kind"`
	Rule  string     `json:"rule"`          // why
	Out   []op.Range `json:"out,omitempty"` // operations that left the context
	Saved int        `json:"saved"`         // tokens that became free
}

// Explain folds a task's stream and explains the present context, or, with step at or above 0,
// the context at the end of that step.
func Explain(h taskdir.Home, id string, step int) (Explanation, error) {
	x, found, err := explainTo(h, id, func(o op.Op) bool {
		_, saved := o.Body.(*op.WorldSaved)
		return saved && o.Step == step
	})
	switch {
	case err != nil:
		return Explanation{}, err
	case found:
	case step >= 0:
		_, err := x.state.Checkpoint(step)
		return Explanation{}, err
	case x.state.Last == 0:
		return Explanation{}, taskdir.EmptyStream(id)
	}
	return x.explanation(), nil
}

// ExplainAt explains the context as it was after op seq, and returns its messages in full, one
// for each of the explanation. A seq past the end is an ErrNoOp.
func ExplainAt(h taskdir.Home, id string, seq uint64) (Explanation, []model.Message, error) {
	x, found, err := explainTo(h, id, func(o op.Op) bool { return o.Seq == seq })
	if err == nil && !found {
		err = fmt.Errorf("%w: op %d of task %s", taskdir.ErrNoOp, seq, id)
	}
	if err != nil {
		return Explanation{}, nil, err
	}
	return x.explanation(), x.state.Context.Chat(), nil
}

// explainTo folds a task's operations up to the first that is the last one wanted, and reports
// whether there is one.
func explainTo(h taskdir.Home, id string, last func(op.Op) bool) (x *explainer, found bool, err error) {
	x = &explainer{sources: make(map[uint64]source)}
	err = taskdir.EachOp(h, id, func(o op.Op) error {
		if err := x.add(o); err != nil {
			return err
		}
		if found = last(o); found {
			return errExplained
		}
		return nil
	})
	if found {
		err = nil
	}
	return x, found, err
}

// errExplained ends a walk over the operations: the rest came later.
var errExplained = errors.New("explained")

// explainer collects what an explanation needs beside the state.
type explainer struct {
	state   state.State
	sources map[uint64]source // what may be in the context
	changes []ExplainedChange
	waiting []ExplainedChange // passes that take effect with a jump that is not made yet
	onPath  []bool            // steps, when it is explained
}

// source is the kept part of an operation, without its possibly large texts.
type source struct {
	kind  op.Kind
	bytes int    // of a result
	rule  string // by which it is in the context
	words string // the rule by which it carries the user's words over
}

func sourceOf(o op.Op) source {
	src := source{kind: o.Kind()}
	switch b := o.Body.(type) {
	case *op.TaskOpened:
		src.rule = "the system prompt, rendered once when the task began"
	case *op.ToolReturned:
		src.bytes = len(b.Text)
	case *op.PassDone:
		var out []string
		for _, r := range b.Ranges {
			out = append(out, r.String())
		}
		ranges := strings.Join(out, ", ")
		src.rule = fmt.Sprintf("replaces ops %s: %s", ranges, passRule(b))
		src.words = fmt.Sprintf("the user's words from ops %s, carried over", ranges)
	case *op.JumpDone:
		src.rule = "the notice of the jump " + op.Way(b.From, b.To)
		src.words = fmt.Sprintf("the user's words from the steps that the jump %s left, carried over",
			op.Way(b.From, b.To))
	case *op.CardsRecalled:
		src.rule = fmt.Sprintf("%s recalled (%s)", quote.Number(len(b.Cards), "card"), b.Why)
		if n := len(b.Facts); n > 0 {
			src.rule = quote.Number(n, "fact") + " of the repository, " + src.rule
		}
	case *op.StrategyGiven:
		src.rule = fmt.Sprintf("the Reflect-Agent's answer to one jump too many back to step %d", b.To)
	}
	return src
}

func (x *explainer) add(o op.Op) error {
	before := x.state.Context.Tokens
	if err := state.Fold(&x.state, o); err != nil {
		return err
	}
	switch b := o.Body.(type) {
	case *op.ContextMasked:
		c := ExplainedChange{Op: o.Seq, Kind: b.Kind(), Rule: maskRule(b), Saved: before - x.state.Context.Tokens}
		for _, r := range b.Results {
			c.Out = append(c.Out, op.Range{First: r.Seq, Last: r.Seq})
		}
		x.changes = append(x.changes, c)
	case *op.PassDone:
		if b.Trigger == op.TriggerEnd {
			break // cards only: the context does not change
		}
		c := ExplainedChange{Op: o.Seq, Kind: b.Kind(), Rule: passRule(b), Out: b.Ranges,
			Saved: b.RangeTokens - o.Tok}
		if b.Trigger == op.TriggerWindow {
			c.Saved = before - x.state.Context.Tokens
		}
		if b.Block != "" && b.Trigger != op.TriggerWindow && x.state.Jump.Pending != nil {
			x.waiting = append(x.waiting, c)
			break
		}
		x.changes = append(x.changes, c)
	case *op.JumpDropped:
		x.waiting = nil // they replace nothing
	case *op.JumpIntended, *op.MailDelivered:
		if len(x.waiting) == 1 { // what is freed is known exactly: the user's words of the span may stay
			x.waiting[0].Saved = before - x.state.Context.Tokens
		}
		x.changes = append(x.changes, x.waiting...)
		x.waiting = nil
	case *op.JumpDone:
		if b.Words != "" {
			x.changes = append(x.changes, ExplainedChange{Op: o.Seq, Kind: b.Kind(),
				Rule: "a jump carries the user's words over", Saved: before - x.state.Context.Tokens})
		}
	}
	if op.ProjectedText(o.Body) != "" {
		x.sources[o.Seq] = sourceOf(o)
	}
	return nil
}

func maskRule(b *op.ContextMasked) string {
	cause := fmt.Sprintf("%d tokens are more than %d", b.Before, b.Limit)
	if b.Why == "overflow" {
		cause = fmt.Sprintf("the provider refused %d tokens", b.Before)
	}
	return fmt.Sprintf("%s: results masked, oldest first, down to %d", cause, b.Target)
}

func passRule(b *op.PassDone) string {
	switch b.Trigger {
	case op.TriggerJump:
		if b.EAS > 0 && b.RangeTokens <= b.EAS { // one span of several
			return fmt.Sprintf("a jump discarded more than the EAS of %d in several spans; this one had %d tokens",
				b.EAS, b.RangeTokens)
		}
		return fmt.Sprintf("a jump discarded %d tokens, more than the EAS of %d", b.RangeTokens, b.EAS)
	case op.TriggerCumulative:
		return fmt.Sprintf("all discarded steps still in the context were together more than the EAS of %d; this "+
			"span had %d tokens", b.EAS, b.RangeTokens)
	case op.TriggerUser:
		return fmt.Sprintf("a user asked for it; the span had %d tokens", b.RangeTokens)
	case op.TriggerMail:
		return fmt.Sprintf("a D-Mail the agent wrote took out %d messages with %d tokens", b.MessagesRemoved,
			b.RangeTokens)
	case op.TriggerWindow:
		return fmt.Sprintf("masking was not enough: the oldest steps, %d tokens as recorded, compacted to reach %d",
			b.RangeTokens, b.Target)
	}
	return fmt.Sprintf("%s; the span had %d tokens", b.Trigger, b.RangeTokens)
}

func (x *explainer) explanation() Explanation {
	s := &x.state
	x.onPath = s.Steps.PathSet(s.Current)
	e := Explanation{
		Task: s.Opened.Task, Step: s.Steps.Next() - 1, Op: s.Last, EAS: s.Model.EAS, Window: s.Model.Window,
		Limit: state.LimitFor(s.Model.Window, s.Model.EAS), Tokens: s.Context.Tokens, Todos: s.Todos,
		Changes: append([]ExplainedChange{}, x.changes...), Messages: []ExplainedMessage{},
	}
	s.Context.Each(func(m model.Message, of []projection.Entry) {
		em := ExplainedMessage{Role: m.Role, Parts: []ExplainedPart{}}
		for _, en := range of {
			em.Tokens += en.Tok
			em.Parts = append(em.Parts, x.part(en))
		}
		if len(of) == 0 {
			em.Parts = append(em.Parts, ExplainedPart{Kind: op.KindToolReturned,
				Text: quote.OneLine(m.Text, maxExplained), Why: "the call has no result in the record"})
		}
		e.Messages = append(e.Messages, em)
	})
	return e
}

func (x *explainer) part(e projection.Entry) ExplainedPart {
	text := e.Msg.Text
	for _, c := range e.Msg.Calls {
		text += " " + c.Name + " " + c.Args
	}
	return ExplainedPart{
		Op: e.Seq, Mark: e.MarkSeq, Kind: x.sources[e.Seq].kind, Step: e.Step, Tokens: e.Tok,
		Text: quote.OneLine(text, maxExplained), Why: x.why(e),
	}
}

// why returns the rule by which an entry is in its present form.
func (x *explainer) why(e projection.Entry) string {
	src := x.sources[e.Seq]
	switch {
	case e.Masked != 0:
		return fmt.Sprintf("masked by op %d; in full it has %d bytes", e.Masked, src.bytes)
	case e.Kind == projection.EntryWords:
		return src.words
	case src.rule != "":
		return src.rule
	case e.Step < len(x.onPath) && x.state.Steps.At(e.Step).Ended && !x.onPath[e.Step]:
		return "left by a jump and kept in full: what was discarded is within the EAS"
	}
	return ""
}
