package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/feature/hook"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/timeline"
	"anamnesis/orchestrator/toolset"
	"anamnesis/orchestrator/workspace"
)

// runner runs the calls of a task's replies. Concurrent calls may use it.
type runner struct {
	place  *workspace.Place
	memory *memory.Memory
	hooks  *hook.Runner
	nested map[string]bool // directories whose instructions were looked for; guarded by mu
	mu     sync.Mutex
	checks gate.Checks
	grace  time.Duration // see Options
}

// run runs one call: decision, intent, effect, result.
func (r *runner) run(ctx context.Context, oc op.Call) error {
	keep := context.WithoutCancel(ctx) // operations are recorded even after ctx ends
	c, err := r.checks.Decide(ctx, oc)
	if err != nil {
		return err
	}
	if c.Refusal != nil {
		return r.place.Journal.Post(keep, c.Refusal...)
	}
	writes := !c.Spec.ReadOnly
	called := &op.ToolCalled{Call: c.ID, Name: c.Name, Args: c.Args, World: c.World, Effects: c.Effects,
		Changes: writes}
	if err := r.place.BeginCall(keep, called, c.Record...); err != nil {
		return err
	}
	start := r.place.Now()
	var res tool.Result
	// A call that may change something is a barrier: whoever takes the task over must know that it began.
	if writes {
		if err = r.place.Journal.Safe(ctx); err != nil && ctx.Err() != nil {
			res, err = tool.Result{IsError: true, Text: "Not begun: the turn ended while the bucket was awaited."}, nil
			writes = false
		}
	}
	if err == nil && !res.IsError {
		res, err = r.perform(ctx, c)
	}
	if err != nil {
		return err
	}
	hooked := ctx.Err() == nil && r.hooks.After(ctx, c, &res) // before the writes: it may add to them
	if writes {
		// An edit that succeeded names all that it wrote, unless a hook wrote more after it.
		r.place.RecordWrites(res.Writes, c.Spec.Edits && !res.IsError && !hooked, c.Spec.Command != "")
	}
	r.addNested(&res)
	if c.Reminder != "" {
		res.Text = strings.TrimRight(res.Text, "\n") + c.Reminder
	}
	if res.Jump != nil {
		res.Jump.By, res.Jump.Call = op.ByAgent, c.ID
	}
	if met := r.memory.Met(ctx, c.Call, &res, true); met != nil {
		res.Record = append(res.Record, met)
		if met.Text != "" {
			res.Text = strings.TrimRight(res.Text, "\n") + "\n\n" + met.Text
		}
	}
	return r.place.PostResult(keep, res.Secrets, res.Jump, &op.ToolReturned{
		Call: c.ID, Name: c.Name, Text: c.Note + res.Text, IsError: res.IsError, Exit: res.Exit, Stdout: res.Stdout,
		Stderr: res.Stderr, Cut: res.Cut, Kept: res.Kept, Reads: res.Reads, Writes: res.Writes, Network: res.Network,
		Isolated: res.Isolated, Display: res.Display, Parts: res.Parts, Repeats: c.Repeats,
		Millis: r.place.Now().Sub(start).Milliseconds(),
	}, res.Record...)
}

// addNested adds to the result of a call the instructions of the directories whose files it read or wrote, each once.
func (r *runner) addNested(res *tool.Result) {
	if a := r.place.State().Opened.Agent; a == nil || !strings.Contains(a.Prompt, agent.InstructionPlaceholder) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if text := agent.Nested(r.place.Dir, slices.Concat(res.Reads, res.Writes), r.nested); text != "" {
		res.Text = strings.TrimRight(res.Text, "\n") + "\n\n[instructions] " + text
	}
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
	if err != nil && (ctx.Err() == nil || errors.Is(err, question.ErrOpen)) {
		return res, fmt.Errorf("tool %s: %w", c.Name, err)
	}
	if err != nil {
		res.IsError = true
		res.Text = strings.TrimSpace(res.Text + "\n" + notice.CutShort(ctx) + ": it may have taken effect in part.")
	}
	return res, nil
}

// environment makes the environments of a task's calls.
type environment struct {
	place     *workspace.Place
	tools     *toolset.Set
	callbacks *Callbacks
	user      *user
	common    tool.Env // what is the same for all calls
}

// of returns a call's environment. Its records outlive ctx.
func (e *environment) of(ctx context.Context, c op.Call) (*tool.Env, error) {
	keep, journal := context.WithoutCancel(ctx), e.place.Journal
	env := e.common
	var err error
	if env.Root, err = e.place.Root(); err != nil {
		return nil, err
	}
	env.Call, env.Beside = c.ID, e.place.Sandbox.Writable()
	env.Started = func(s op.ToolStarted) error { return journal.Post(keep, &s) }
	// Long output is recorded only for a model that can open it again.
	if _, offered := e.tools.Registry.Spec(timeline.RecallName); offered {
		env.Keep = func(part int, from int64, text string) (uint64, error) {
			return journal.PostSeq(keep, &op.OutputKept{Call: c.ID, Part: part, From: from, Text: text})
		}
	}
	if e.user.answers() {
		env.Ask = func(ctx context.Context, text string) (string, bool, error) {
			return e.user.ask(ctx, op.QuestionAsked{About: op.AboutAnswer, Text: text, Call: c.ID})
		}
	}
	if show := e.callbacks.Progress; show != nil {
		env.Progress = func(text string) { show(c, journal.RedactText(text)) }
	}
	if show := e.callbacks.Output; show != nil {
		env.Output = func(p []byte) { show(c, p) }
	}
	return &env, nil
}
