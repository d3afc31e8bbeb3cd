package runtime

import (
	"context"
	"errors"
	"fmt"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/reflect"
	"anamnesis/orchestrator/state"
)

// maxReflectError is how much of a failed reflection's error is recorded, in bytes.
const maxReflectError = 600

// reflect asks the Reflect-Agent about the pending jump and records the result. A reflection
// that a crash or an interruption cut short is discarded and asked again.
func (t *Task) reflect(ctx, keep context.Context) error {
	p := t.Ledger.State().Jump.Pending
	m := t.opts.Reflect
	if m == nil {
		m = t.opts.Model
	}
	if m == nil {
		return t.Ledger.Record(keep, &op.ReflectFailed{To: p.To, Why: "no model is configured"})
	}
	if !t.awaitProvider(ctx) {
		return nil
	}
	jumps := len(t.Ledger.State().Jump.Backward(p.To))
	reasons, err := t.jumpReasons(p.To)
	if err != nil {
		return err
	}
	start := t.Ledger.Now()
	if err := t.Ledger.Record(keep, &op.ReflectAsked{To: p.To, Jumps: jumps, Model: m.Name()}); err != nil {
		return err
	}
	res, err := reflect.Ask(ctx, m, reflectSource{t}, reflect.Request{
		Task: t.Ledger.ID, Goal: t.Ledger.State().Said.Request, To: p.To, Jumps: jumps, Reasons: append(reasons, p.Reason),
		Outline: notice.Outline(t.Ledger.State(), max(0, t.Ledger.State().Steps.Next()-notice.MaxOutlined)), Turn: t.Ledger.State().Totals.Reflections,
	})
	took := t.Ledger.Now().Sub(start).Milliseconds()
	if err != nil {
		if ctx.Err() != nil {
			return nil // interrupted: the jump is dropped with the turn
		}
		if f := (*model.Fault)(nil); errors.As(err, &f) {
			if wait := t.waitAfter(f); wait != nil {
				f = t.Ledger.Journal.RedactFault(f)
				return t.Ledger.Record(keep, &op.ModelFailed{Error: f.Error(), Status: f.Status, Tries: max(f.Tries, 1), Wait: wait})
			}
		}
		return t.Ledger.Record(keep, &op.ReflectFailed{
			To: p.To, Why: quote.OneLine(why(err), maxReflectError), Looked: res.Looked, Calls: res.Calls, Usage: res.Usage, Millis: took,
		})
	}
	s := res.Strategy
	return t.Ledger.Record(keep, &op.StrategyGiven{
		To: p.To, Diagnosis: s.Diagnosis, Abandon: s.Abandon, Plan: s.Plan, Question: s.Question, Text: s.Text(p.To, jumps),
		Looked: res.Looked, Calls: res.Calls, Usage: res.Usage, Millis: took,
	})
}

// why returns a reflection's error without its wrapping.
func why(err error) string {
	var f *model.Fault
	if errors.As(err, &f) {
		return f.Error()
	}
	return err.Error()
}

// jumpReasons returns the reasons of the agent's jumps back to a step, oldest first, as many
// as the loop guard counts. It reads only those operations.
func (t *Task) jumpReasons(to int) ([]string, error) {
	var out []string
	jumps := t.Ledger.State().Jump.Backward(to)
	for _, seq := range jumps[max(0, len(jumps)-state.MaxBackwardJumps):] {
		ops, err := t.Ledger.Ops(op.Range{First: seq, Last: seq})
		if err != nil {
			return nil, fmt.Errorf("read the reasons of jumps: %w", err)
		}
		for _, o := range ops {
			out = append(out, op.ReasonOf(o.Body))
		}
	}
	return out, nil
}

// reflectSource is the Reflect-Agent's view of the task.
type reflectSource struct{ t *Task }

// Outline implements reflect.Source.
func (s reflectSource) Outline(from int) string { return notice.Outline(s.t.Ledger.State(), from) }

// Open implements reflect.Source.
func (s reflectSource) Open(seq uint64, from int) (string, error) {
	return s.t.Memory.Reopen(seq, from)
}

// Cards implements reflect.Source.
func (s reflectSource) Cards(ctx context.Context, query string) (string, error) {
	text, _, err := s.t.Memory.Query(ctx, query)
	return text, err
}

// answerOrStuck asks the user; without an answer the turn ends.
func (t *Task) answerOrStuck(ctx, keep context.Context, act state.Action) (answered bool, out Outcome, err error) {
	_, answered, err = t.user.ask(ctx, act.Question)
	if err = errors.Join(err, t.Ledger.Settle()); answered || err != nil {
		return answered, Outcome{}, err
	}
	if ctx.Err() != nil {
		out, err = t.interrupted(ctx, keep)
		return false, out, err
	}
	out, err = t.endTurn(keep, act)
	return false, out, err
}
