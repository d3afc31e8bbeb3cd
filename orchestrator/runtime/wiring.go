package runtime

import (
	"context"
	"fmt"

	"anamnesis/orchestrator/feature/repeat"
	"anamnesis/orchestrator/feature/research"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
)

// features are what a task's agent can do beside calling tools. This file alone names them here:
// how each is made, its tools, its checks and its effects.
type features struct {
	repeat   *repeat.Guard
	research *research.Guard
}

func (t *Task) makeFeatures() features {
	f := features{
		repeat:   repeat.New(t.Place, t.tools, repeat.Options{Polling: t.opts.Guards.Polling, RunUndone: t.opts.Guards.RunUndone}),
		research: research.New(t.Place, t.tools, t.opts.Guards.KnownModel),
	}
	t.tools.Bind(research.Tool(f.research))
	return f
}

// makeRunner returns what runs the task's calls.
func (t *Task) makeRunner() *runner {
	r := &runner{
		ledger: t.Ledger, place: t.Place, memory: t.Memory, tools: t.tools, sandbox: t.sandbox, callbacks: &t.opts.Callbacks, grace: t.opts.Grace, ask: t.askFor,
		env: tool.Env{
			Dir: t.Place.Dir, Timeline: taskTimeline{t}, Mailbox: taskTimeline{t}, Redactor: t.Ledger.Journal.Redactor(), Jobs: t.Place.Jobs, Todos: t.Ledger.CurrentTodos,
		},
	}
	if len(t.opts.Subagents) > 0 {
		r.env.Subagents = taskSubagents{t}
	}
	r.checks = []gate.Check{
		r.checkTime,             // a call after the end is not even looked at
		r.checkArgs,             // every later check reads its tool and its arguments
		r.checkSecrets,          // before a user sees the arguments, so that what is shown is what runs
		t.features.repeat.Check, // before anybody is asked: the answer would be the same as before
		r.prepareSandbox,        // the approval depends on whether the network is held
		r.previewEdit,           // an edit that cannot be made needs no approval
		t.gate.CheckRules,       // a rule that refuses needs neither research nor a user
		t.features.research.Check,
		t.gate.AskUser, // last: a user is asked only about a call that will run
	}
	return r
}

// interruptible reports whether an action is omitted once the user ends the turn. Actions that
// close a step or a turn always run.
func interruptible(k state.ActionKind) bool {
	switch k {
	case state.ActAsk, state.ActRecall, state.ActJump, state.ActMail, state.ActCompact, state.ActReflect, state.ActAskUser:
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
		return nil, t.deliverMail(keep)
	case state.ActFinishJump:
		return nil, t.finishJump(keep, nil)
	case state.ActTellRestore:
		return nil, t.Place.TellRestore(keep)
	case state.ActDropJump:
		return nil, t.dropJump(keep, act.Detail)
	case state.ActReflect:
		return nil, t.reflect(ctx, keep)
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
