package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/goal"
	"anamnesis/orchestrator/feature/hook"
	"anamnesis/orchestrator/feature/jobs"
	"anamnesis/orchestrator/feature/mail"
	"anamnesis/orchestrator/feature/neverstart"
	"anamnesis/orchestrator/feature/planmode"
	"anamnesis/orchestrator/feature/reflect"
	"anamnesis/orchestrator/feature/repeat"
	"anamnesis/orchestrator/feature/research"
	"anamnesis/orchestrator/feature/subagent"
	"anamnesis/orchestrator/feature/todo"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/toolset"
	"anamnesis/orchestrator/workspace"
)

// features are what a task's agent can do beside calling tools. This file makes them and lists their
// tools and the checks of a call, in order; other files call some of them.
type features struct {
	gate      *gate.Gate
	goal      *goal.Checker
	hooks     *hook.Runner
	jobs      *jobs.Jobs
	mail      *mail.Sender
	reflect   *reflect.Agent
	never     *neverstart.Guard
	planning  func() bool // also of a subagent, by the task that began it
	repeat    *repeat.Guard
	research  *research.Guard
	subagents *subagents
}

func newFeatures(o *Options, p *workspace.Place, m *memory.Memory, tools *toolset.Set, asked *user,
	g gate.Options) features {
	js := jobs.New(p.Ledger)
	env := environment{place: p, tools: tools, callbacks: &o.Callbacks, user: asked, common: tool.Env{
		Dir: p.Dir, Timeline: taskTimeline{p.Ledger, m}, Redactor: p.Journal.Redactor(), Jobs: js,
	}}
	g.Env = env.of
	f := features{
		gate: gate.New(p, g),
		goal: goal.New(p, p.Sandbox.Get, o.Callbacks.Progress),
		jobs: js,
		mail: mail.New(p, func(ops []op.Op) []string {
			effects, _ := subagentsIn(p, ops)
			return effects
		}),
		reflect:  reflect.New(p.Ledger, m, cmp.Or(o.Reflect, o.Model)),
		never:    neverstart.New(p, m.KnownFacts),
		repeat:   repeat.New(p, tools, o.Guards.RunUndone),
		research: research.New(p, tools, o.Guards.KnownModel),
	}
	f.planning = func() bool { return planmode.On(p.Ledger) || o.planning != nil && o.planning() }
	f.hooks = hook.New(o.Hooks, p, func() approval.Mode {
		if mode, _ := f.gate.Mode(); !f.planning() {
			return mode
		}
		return "plan"
	})
	f.subagents = &subagents{planning: f.planning, opts: o, ledger: p.Ledger, place: p, gate: f.gate, tools: tools}
	specs := make([]op.Agent, len(o.Subagents))
	for i, s := range o.Subagents {
		specs[i] = s.Spec
	}
	todos := func() []op.Todo { return todo.Current(p.Ledger) }
	tools.Bind(slices.Concat(mail.Tools(f.mail), jobs.Tools(f.jobs), []tool.Tool{
		research.Tool(f.research), subagent.Tool(specs, f.subagents), todo.Tool(todos),
	})...)
	return f
}

func (f *features) stepMark(id int) string {
	return fmt.Sprintf("[step %d]", id) + f.mail.StepMark(id) + f.research.CiteLine(id)
}

// checks are what each call goes through.
func (f *features) checks() gate.Checks {
	return gate.Checks{
		f.gate.CheckArgs, // the later ones read the tool and the arguments, which a user sees as they run
		planmode.Check(f.planning, jobs.StopName), // a call that plan mode refuses needs no other reason
		f.repeat.Check,               // before anybody is asked: the answer would be the same as before
		f.never.Check,                // for the same reason
		f.gate.Prepare,               // the approval depends on whether the network is held, and on the preview
		planmode.Confine(f.planning), // the sandbox is made
		f.hooks.Check,                // before the rules, whose question it may answer, and before calls that need none
		f.gate.CheckRules,            // a rule that refuses needs neither research nor a user
		f.research.Check,             // before the user, who is not asked about what the agent has to look up
		f.gate.AskUser,               // last: a user is asked only about a call that will run
	}
}

// settle folds what was posted, and records the end of what a dead process left at work.
func (t *Task) settle(ctx context.Context) error {
	return errors.Join(t.Ledger.ApplyQueued(), t.features.jobs.CloseLost(ctx), t.left.CloseSubagents(ctx))
}

// Jobs are the task's background commands.
func (t *Task) Jobs() *jobs.Jobs { return t.features.jobs }

// stop ends what works beside the turn, and counts the task. It records both, so that it comes
// before the end of the stream.
func (t *Task) stop() error {
	jobs := t.features.jobs.Close()
	t.features.hooks.Close()
	return errors.Join(jobs, t.Memory.CountTask())
}

// interruptible reports whether an action is omitted once the user ends the turn. Actions that
// close a step or a turn always run.
func interruptible(k state.ActionKind) bool {
	switch k {
	case state.ActAsk, state.ActRecall, state.ActJump, state.ActMail, state.ActCompact, state.ActReflect,
		state.ActAskUser, state.ActCheck:
		return true
	}
	return false
}

// perform executes one action. The first result is the model's fault, if it had one.
func (t *Task) perform(ctx, keep context.Context, act state.Action) (*model.Fault, error) {
	switch act.Kind {
	case state.ActRecall:
		return nil, t.Memory.Recall(ctx, act.Reason)
	case state.ActSaveWorld:
		err := t.saveWorld(keep)
		if err == nil {
			t.Ledger.SnapshotStep()
		}
		return nil, err
	case state.ActAsk:
		return t.ask(ctx, keep)
	case state.ActRunCalls:
		return nil, t.runCalls(ctx, keep, act.Calls)
	case state.ActCloseUnknown:
		return nil, t.left.CloseUnknown(keep, act.Calls)
	case state.ActJump:
		return nil, t.performJump(ctx, keep)
	case state.ActMail:
		return nil, t.features.mail.Deliver(keep)
	case state.ActFinishJump:
		return nil, t.finishJump(keep, nil)
	case state.ActTellRestore:
		return nil, t.Place.TellRestore(keep)
	case state.ActCheck:
		// The last check of a task whose time is used up still has to say what stands: it has a time of its
		// own.
		longest, within := goal.MaxTime, ctx
		if act.Reason == state.LastCheck {
			longest = goal.LastTime
		} else {
			var cancel context.CancelFunc
			within, cancel = t.withinTime(ctx)
			defer cancel()
		}
		return nil, t.features.goal.Run(within, keep, act.Reason == "asked", longest)
	case state.ActReturn:
		return nil, t.Ledger.Record(keep, &op.JumpRequested{To: act.Step, Reason: act.Detail, By: op.ByGoal})
	case state.ActDropJump:
		return nil, t.dropJump(keep, act.Detail)
	case state.ActReflect:
		if !t.awaitProvider(ctx) {
			return nil, nil
		}
		return nil, t.features.reflect.Reflect(ctx, keep, act, t.waitAfter)
	case state.ActMask:
		return nil, t.Memory.Mask(keep, act)
	case state.ActLearn:
		return nil, t.Memory.Learn(ctx, keep)
	case state.ActLearnRepairs:
		return nil, t.Memory.LearnRepairs(keep)
	case state.ActCompact:
		return nil, t.Memory.CompactOldest(ctx, keep, act)
	}
	return nil, fmt.Errorf("unknown action %d", act.Kind)
}
