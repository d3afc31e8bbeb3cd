package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
)

// ErrCallOpen: another agent's call is in progress, so the world may change.
var ErrCallOpen = errors.New("a call is under way")

// Outside drives a task whose agent is another program. It records what that agent's hooks
// report; it asks no model and runs no tool.
type Outside struct{ *Task }

func (t Outside) openCalls() []state.CallState {
	if reply := t.Ledger.State().Reply; reply != nil {
		return reply.Open()
	}
	return nil
}

// Open returns the calls that have no result yet.
func (t Outside) Open() []op.Call {
	var open []op.Call
	for _, c := range t.openCalls() {
		open = append(open, c.Call)
	}
	return open
}

// Writing reports whether a call without a result may change files.
func (t Outside) Writing() bool {
	return slices.ContainsFunc(t.openCalls(), func(c state.CallState) bool { return c.Changes })
}

// Said records words of the user, and saves the world if it was never saved.
func (t Outside) Said(ctx context.Context, text string) error {
	if err := t.Ledger.Record(ctx, &op.UserSaid{Text: text, Source: op.SourceRequest}); err != nil {
		return err
	}
	return t.Advance(ctx)
}

// OutsideCall is a call of another agent.
type OutsideCall struct {
	op.Call
	Writes bool // it may change the world
}

// Begin records that a call is about to run. If the call may write and none is in progress, it
// first saves what changed since the last look, as the user's. A call that begins while
// another is in progress joins its step.
func (t Outside) Begin(ctx context.Context, c OutsideCall) error {
	return t.begin(ctx, c, c.Writes)
}

// Began records a call that runs already and may have changed the world: changes since the
// last look count as the call's.
func (t Outside) Began(ctx context.Context, c OutsideCall) error {
	return t.begin(ctx, c, false)
}

// RecordUserChanges saves what the user changed since the last look, unless a call is in progress.
func (t Outside) RecordUserChanges(ctx context.Context) error {
	if len(t.Open()) > 0 || !t.Ledger.State().Turn.Open {
		return nil
	}
	if err := t.Advance(ctx); err != nil {
		return err
	}
	return t.Place.BeginCalls(ctx, true)
}

func (t Outside) begin(ctx context.Context, c OutsideCall, look bool) error {
	if slices.ContainsFunc(t.Open(), func(o op.Call) bool { return o.ID == c.ID }) {
		return nil // reported twice
	}
	reply := &op.ModelReplied{Calls: []op.Call{c.Call}, Finish: "tool_calls", Joins: len(t.Open()) > 0}
	called := &op.ToolCalled{Call: c.ID, Name: c.Name, Args: c.Args, Changes: c.Writes, Effects: c.Writes}
	bodies := []op.Body{reply, called}
	if !reply.Joins {
		if !t.Ledger.State().Turn.Open {
			if err := t.Ledger.Record(ctx, &op.TaskResumed{Program: t.opts.Program, Continue: true}); err != nil {
				return err
			}
		}
		if err := t.Advance(ctx); err != nil {
			return err
		}
		if look {
			if err := t.Place.BeginCalls(ctx, true); err != nil {
				return err
			}
		}
		bodies = append([]op.Body{&op.ModelAsked{LastSeq: t.Ledger.State().Last}}, bodies...)
	}
	return t.Ledger.Record(ctx, bodies...)
}

// Returned records a call's result, and ends the step if no other call is in progress. A
// result of a call that never began also begins it.
func (t Outside) Returned(ctx context.Context, c OutsideCall, b *op.ToolReturned) error {
	if !slices.ContainsFunc(t.Open(), func(o op.Call) bool { return o.ID == b.Call }) {
		if err := t.Began(ctx, c); err != nil {
			return err
		}
	}
	bodies := []op.Body{b}
	res := &tool.Result{Text: b.Text, Stdout: b.Text, IsError: b.IsError, Exit: b.Exit}
	if met := t.Memory.Met(ctx, c.Call, res, false); met != nil {
		bodies = []op.Body{met, b}
	}
	if err := t.Ledger.Record(ctx, bodies...); err != nil || len(t.Open()) > 0 {
		return err
	}
	return t.Advance(ctx)
}

// Answered records the agent's last words of a turn, and ends the turn. It records
// repairs. Calls without a result have an unknown outcome.
func (t Outside) Answered(ctx context.Context, text string) error {
	if err := t.Unknown(ctx); err != nil || !t.Ledger.State().Turn.Open {
		return err
	}
	answer := &op.ModelReplied{Text: cmp.Or(text, "(no answer was reported)"), Finish: "stop"}
	if err := t.Ledger.Record(ctx, &op.ModelAsked{LastSeq: t.Ledger.State().Last}, answer); err != nil {
		return err
	}
	return t.Advance(ctx)
}

// NotReported is the result of a call whose agent did not report how it ended.
const NotReported = "The outcome was not reported."

// Unknown closes calls that have no result.
func (t Outside) Unknown(ctx context.Context) error {
	for _, c := range t.Open() {
		unknown := &op.ToolReturned{Call: c.ID, Name: c.Name, Text: NotReported, Unknown: true}
		if err := t.Ledger.Record(ctx, unknown); err != nil {
			return err
		}
	}
	return t.Advance(ctx)
}

// Checkpoint saves the world as a step of its own.
func (t Outside) Checkpoint(ctx context.Context, note string) (step int, err error) {
	if len(t.Open()) > 0 {
		return 0, fmt.Errorf("%w: %s", ErrCallOpen, t.Open()[0].Name)
	}
	reply := &op.ModelReplied{Text: note, Finish: op.FinishCheckpoint}
	if err := t.Ledger.Record(ctx, &op.ModelAsked{LastSeq: t.Ledger.State().Last}, reply); err != nil {
		return 0, err
	}
	if err := t.saveWorld(ctx); err != nil {
		return 0, err
	}
	return t.Ledger.State().Current, nil
}

// Advance performs what follows from the record without the agent: it recalls cards, saves the
// world, finishes a jump, learns, and ends the turn.
func (t Outside) Advance(ctx context.Context) error {
	for {
		if err := t.Ledger.ApplyQueued(); err != nil {
			return err
		}
		act := state.Next(t.Ledger.State(), t.limits())
		switch act.Kind {
		case state.ActRecall, state.ActSaveWorld, state.ActFinishJump, state.ActTellRestore, state.ActLearn,
			state.ActLearnRepairs, state.ActDropJump, state.ActJump:
			if _, err := t.perform(ctx, context.WithoutCancel(ctx), act); err != nil {
				return err
			}
		case state.ActEndTurn:
			if act.Reason != "done" {
				return nil // limits are the other agent's own
			}
			_, err := t.endTurn(ctx, act)
			return err
		default:
			return nil
		}
	}
}

// News returns what the agent has not been shown since an operation: recalled cards, changes
// by the user, and the results of jumps.
func (t Outside) News(after uint64) (string, error) {
	ops, err := t.Ledger.Ops(op.Range{First: after + 1, Last: t.Ledger.State().Last})
	if err != nil || after >= t.Ledger.State().Last {
		return "", err
	}
	var parts []string
	for _, o := range ops {
		switch b := o.Body.(type) {
		case *op.CardsRecalled:
			parts = append(parts, b.Text)
		case *op.JumpDone:
			parts = append(parts, b.Words, b.Notice)
		case *op.PassDone, *op.WorldChanged, *op.WorldRestored:
			parts = append(parts, op.ProjectedText(b))
		}
	}
	parts = slices.DeleteFunc(parts, func(p string) bool { return strings.TrimSpace(p) == "" })
	return strings.Join(parts, "\n\n"), nil
}

// LastSaid returns the words of the user that the agent has not acted on yet.
func (t Outside) LastSaid() (string, error) {
	at := t.Ledger.State().Turn.LastWords
	if at == 0 || at <= t.Ledger.State().Turn.AskedAt {
		return "", nil
	}
	said, err := taskdir.ReadBody[*op.UserSaid](t.Ledger.Journal.Log(), at)
	if err != nil {
		return "", err
	}
	return said.Text, nil
}

// recentOps is how far back Recorded looks.
const recentOps = 200

// Recorded reports whether a result of a call was recorded lately.
func (t Outside) Recorded(call string) (bool, error) {
	last := t.Ledger.State().Last
	ops, err := t.Ledger.Ops(op.Range{First: max(last, recentOps) - recentOps + 1, Last: last})
	return slices.ContainsFunc(ops, func(o op.Op) bool {
		b, ok := o.Body.(*op.ToolReturned)
		return ok && b.Call == call
	}), err
}
