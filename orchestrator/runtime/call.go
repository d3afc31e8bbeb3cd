package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/orchestrator/tool/timeline"
	"anamnesis/orchestrator/toolset"
	"anamnesis/orchestrator/workspace"
)

// runner runs the calls of a task's replies. Concurrent calls may use it.
type runner struct {
	ledger    *journal.Ledger
	place     *workspace.Place
	memory    *memory.Memory
	tools     *toolset.Set
	env       tool.Env // what is the same for all calls
	callbacks *Callbacks
	grace     time.Duration // see Options
	checks    []gate.Check
	ask       func(ctx context.Context, question string) (answer string, ok bool, err error)
}

// run runs one call: checks, intent, effect, result.
func (r *runner) run(ctx context.Context, oc op.Call) error {
	keep := context.WithoutCancel(ctx) // operations are recorded even after ctx ends
	c, refusal, err := r.admit(ctx, oc)
	if err != nil {
		return err
	}
	if refusal != nil {
		return r.ledger.Journal.Post(keep, refusal...)
	}
	if !c.Spec.ReadOnly {
		if err := r.place.BeginWrite(keep); err != nil {
			return err
		}
	}
	if err := r.ledger.Journal.Post(keep, append(c.Record, &op.ToolCalled{Call: c.ID, Name: c.Name, Args: c.Args, World: c.World, Effects: c.Effects, Changes: !c.Spec.ReadOnly})...); err != nil {
		return err
	}
	start := r.ledger.Now()
	res, err := r.perform(ctx, c)
	if err != nil {
		return err
	}
	if !c.Spec.ReadOnly {
		r.place.NoteWrites(res.Writes, c.Spec.Edits && !res.IsError || c.Spec.Command != "" && c.Env.Sandbox.Observes())
	}
	return r.finish(keep, c, res, r.ledger.Now().Sub(start))
}

// admit goes through the checks. The first refusal ends the call.
func (r *runner) admit(ctx context.Context, oc op.Call) (*gate.Call, []op.Body, error) {
	c := &gate.Call{Call: oc}
	for i := 0; i < len(r.checks); i++ {
		if refusal, err := r.checks[i](ctx, c); refusal != nil || err != nil {
			return c, refusal, err
		}
		if c.Edited != "" { // the user may have written another call: it meets every check
			oc.Args = c.Edited
			c, i = &gate.Call{Call: oc, Note: notice.EditedNote(oc.Args)}, -1
		}
	}
	return c, nil, nil
}

// checkTime refuses calls after the turn was interrupted or its time is over.
func (r *runner) checkTime(ctx context.Context, c *gate.Call) ([]op.Body, error) {
	if ctx.Err() != nil {
		return c.Fail("Not run: " + notice.EndedBy(ctx) + "."), nil
	}
	return nil, nil
}

// checkArgs finds the tool, checks the arguments and prepares the call's environment.
func (r *runner) checkArgs(ctx context.Context, c *gate.Call) (refusal []op.Body, err error) {
	if c.Tool, c.Input, err = r.tools.Registry.Validate(c.Call); err != nil {
		res, aboutTheCall := tool.ErrorResult(err)
		if !aboutTheCall {
			return nil, fmt.Errorf("validate call %s: %w", c.ID, err)
		}
		return c.Fail(res.Text), nil
	}
	c.Spec = tool.SpecOf(c.Tool, c.Input)
	c.Env, err = r.envOf(ctx, c.Call)
	return nil, err
}

// checkSecrets puts the values of markers into the arguments of a tool that may write them.
func (r *runner) checkSecrets(_ context.Context, c *gate.Call) (refusal []op.Body, err error) {
	if c.Input, err = r.ledger.Journal.UnredactArgs(c.Env, c.Spec, c.Input); err != nil {
		res, _ := tool.ErrorResult(err)
		return c.Fail(res.Text), nil
	}
	return nil, nil
}

// prepareSandbox makes the sandbox of a call that runs a command or a program.
func (r *runner) prepareSandbox(ctx context.Context, c *gate.Call) (refusal []op.Body, err error) {
	if c.Spec.Command == "" && !c.Spec.Runs {
		return nil, nil
	}
	if c.Env.Sandbox, err = r.place.Sandbox.Get(ctx); ctx.Err() != nil {
		return nil, nil // the call is not run
	}
	return nil, err
}

// previewEdit shows the user what a call is about to change, redacted. A call that cannot be made
// needs no approval: it goes on with a tool that fails.
func (r *runner) previewEdit(_ context.Context, c *gate.Call) ([]op.Body, error) {
	if !c.Spec.Edits || r.callbacks.Approve == nil {
		return nil, nil
	}
	changes, err := file.Preview(c.Env, c.Name, c.Input)
	if err != nil {
		c.Tool, c.Spec.ReadOnly = failing{c.Tool, err}, true
	}
	if err != nil || len(changes) == 0 || r.callbacks.Editing == nil {
		return nil, nil
	}
	for i := range changes {
		changes[i].Before, changes[i].After = r.ledger.Journal.RedactText(changes[i].Before), r.ledger.Journal.RedactText(changes[i].After)
	}
	r.callbacks.Editing(c.Call, changes)
	return nil, nil
}

// failing is a tool whose call fails, whatever has become of the files since err was found.
type failing struct {
	tool.Tool
	err error
}

func (f failing) Call(context.Context, *tool.Env, json.RawMessage) (tool.Result, error) {
	return tool.Errorf("%s: %v. Nothing was written.", f.Spec().Name, f.err), nil
}

// envOf returns a call's environment. Its records outlive ctx.
func (r *runner) envOf(ctx context.Context, c op.Call) (*tool.Env, error) {
	keep := context.WithoutCancel(ctx)
	env := r.env
	var err error
	if env.Root, err = r.place.Root(); err != nil {
		return nil, err
	}
	env.Call, env.Beside = c.ID, r.place.Sandbox.Writable()
	env.Started = func(s op.ToolStarted) error { return r.ledger.Journal.Post(keep, &s) }
	if _, offered := r.tools.Registry.Spec(timeline.RecallName); offered {
		env.Keep = func(part int, from int64, text string) (uint64, error) {
			return r.ledger.Journal.PostSeq(keep, &op.OutputKept{Call: c.ID, Part: part, From: from, Text: text})
		}
	}
	if r.callbacks.Ask != nil {
		env.Ask = r.ask
	}
	if show := r.callbacks.Progress; show != nil {
		env.Progress = func(text string) { show(c, r.ledger.Journal.RedactText(text)) }
	}
	if show := r.callbacks.Output; show != nil {
		env.Output = func(p []byte) { show(c, p) }
	}
	return &env, nil
}

// perform calls the tool. A call that changes something has a grace period if the program is asked
// to stop.
func (r *runner) perform(ctx context.Context, c *gate.Call) (tool.Result, error) {
	if !c.Spec.ReadOnly && !c.Spec.Delegates { // a subagent finishes its own calls
		var end func()
		ctx, end = notice.Finishing(ctx, r.grace)
		defer end()
	}
	res, err := c.Tool.Call(ctx, c.Env, c.Input)
	switch {
	case err != nil && ctx.Err() == nil:
		return res, fmt.Errorf("tool %s: %w", c.Name, err)
	case err != nil:
		res.IsError = true
		res.Text = strings.TrimSpace(res.Text + "\n" + notice.CutShort(ctx) + ": it may have taken effect in part.")
	}
	return res, nil
}

// finish records a call's result, and with it what the call requested.
func (r *runner) finish(ctx context.Context, c *gate.Call, res tool.Result, took time.Duration) error {
	if c.Reminder != "" {
		res.Text = strings.TrimRight(res.Text, "\n") + c.Reminder
	}
	res.Text = c.Note + res.Text
	if res.Jump != nil {
		if err := r.schedule(ctx, c, &res); err != nil {
			return err
		}
	}
	if err := r.ledger.Journal.KeepFound(res.Reads, res.Secrets); err != nil {
		return err
	}
	bodies := res.Record
	if met := r.memory.Met(c.Call, &res); met != nil {
		bodies = append(bodies, met)
	}
	return r.ledger.Journal.Post(ctx, append(bodies, &op.ToolReturned{
		Call: c.ID, Name: c.Name, Text: res.Text, IsError: res.IsError, Exit: res.Exit, Stdout: res.Stdout, Stderr: res.Stderr,
		Cut: res.Cut, Kept: res.Kept, Reads: res.Reads, Writes: res.Writes, Network: res.Network, Isolated: res.Isolated, Display: res.Display, Parts: res.Parts, Repeats: c.Repeats, Millis: took.Milliseconds(),
	})...)
}

// schedule records the jump that a call requests. A second one in the same step changes the result
// to an error.
func (r *runner) schedule(ctx context.Context, c *gate.Call, res *tool.Result) error {
	j := *res.Jump
	j.By, j.Call = op.ByAgent, c.ID
	err := r.ledger.Schedule(ctx, &j)
	if errors.Is(err, taskdir.ErrPending) {
		*res, err = tool.Errorf("Not scheduled: %v.", err), nil
	}
	return err
}
