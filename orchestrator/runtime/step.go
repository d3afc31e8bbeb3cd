package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"anamnesis/anamnesis/experience"
	"anamnesis/anamnesis/testrun"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/autorun"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/workspace"
)

// maxReadOnlyParallel is how many read-only calls of one reply run at once.
const maxReadOnlyParallel = 8

// Outcome is how a turn ended.
type Outcome struct {
	Reason string // done | interrupted | evicted | asked | limit | stuck | failed | idle
	Detail string
	Limit  op.Limit // that was reached, when Reason is limit
	Answer string   // the agent's last words
	// Learned are the cards written from abandoned paths when the turn was done.
	Learned []string
	// Autorun are files that changed meanwhile and that other programs run by themselves.
	Autorun []string
	// Tests is the turn's last test run if tests failed in it or it ran none.
	Tests *experience.Check
	Err   error // the model's fault, when Reason is failed
}

// Run executes actions until the turn ends: the agent answered, a limit was reached, or ctx
// was cancelled, which ends the turn with everything recorded. An error is a failure of the
// program or its stores; the task can be opened again.
func (t *Task) Run(ctx context.Context) (Outcome, error) {
	before := autorun.Mark(t.Place.Dir)
	t.Place.Autorun = nil
	begin := t.Ledger.State().Last
	if d := t.opts.Store.Deadline; d != nil {
		ctx = guard.WithDeadline(ctx, d, t.Ledger.Journal.Safe)
	}
	out, err := t.run(ctx)
	// The end of a turn is a barrier: its outcome is reported only when another machine that takes the task over would
	// have it.
	if safe := t.Ledger.Journal.Safe(ctx); safe != nil && ctx.Err() == nil {
		err = errors.Join(err, safe)
	}
	run := t.Memory.TestsSince(begin)
	if run != nil && (run.Status == testrun.Failed || run.Status == testrun.RanNone) {
		out.Tests = run
	}
	for _, f := range before.Changed(t.Place.Dir, t.Place.Autorun) {
		out.Autorun = append(out.Autorun, f.String())
	}
	return out, err
}

func (t *Task) run(ctx context.Context) (Outcome, error) {
	// Operations are recorded even after ctx ends; only effects are cut short. keep carries
	// the values without the cancellation.
	keep := context.WithoutCancel(ctx)
	for {
		if err := t.settle(keep); err != nil {
			return Outcome{}, err
		}
		act := state.Next(t.Ledger.State(), t.limits())
		if ctx.Err() != nil && interruptible(act.Kind) {
			return t.interrupted(ctx, keep)
		}
		switch act.Kind {
		case state.ActIdle:
			return Outcome{Reason: "idle", Answer: t.Ledger.State().Said.Answer}, nil
		case state.ActAskUser:
			goOn, out, err := t.askAndGoOn(ctx, keep, act)
			if errors.Is(err, question.ErrOpen) {
				return t.leaveOpen(ctx, keep)
			}
			if err != nil || !goOn {
				return out, err
			}
			continue
		case state.ActEndTurn:
			if act.Reason == "done" && ctx.Err() == nil {
				// A hook may refuse the end; its reason is recorded as a notice that the agent answers, so that Next
				// does not end the turn.
				said := t.features.hooks.Stop(ctx, t.Ledger.State().Said.Answer)
				if err := t.Ledger.Record(keep, said...); err != nil {
					return Outcome{}, err
				}
				if act = state.Next(t.Ledger.State(), t.limits()); act.Kind != state.ActEndTurn {
					continue
				}
			}
			out, err := t.endTurn(keep, act)
			if err != nil || !t.Ledger.State().Turn.Open {
				return out, err
			}
			continue // words arrived between the decision and the end
		}
		fault, err := t.perform(ctx, keep, act)
		if errors.Is(err, question.ErrOpen) {
			return t.leaveOpen(ctx, keep)
		}
		if err != nil {
			return Outcome{}, err
		}
		if fault != nil {
			if ctx.Err() != nil {
				return t.interrupted(ctx, keep)
			}
			if fault.Kind == model.FaultOverflow || t.Ledger.State().Outage != nil || t.limits().TimeUp {
				continue // the context is made smaller, the provider waited for, or the turn ends with the time
			}
			again, err := t.askAboutProvider(ctx, fault)
			if errors.Is(err, question.ErrOpen) {
				return t.leaveOpen(ctx, keep)
			}
			if err != nil {
				return Outcome{}, err
			}
			if again || ctx.Err() != nil {
				continue
			}
			if err := t.endAtBest(ctx, keep, false); err != nil {
				return Outcome{}, err
			}
			return t.failed(keep, fault)
		}
	}
}

func (t *Task) dropJump(ctx context.Context, why string) error {
	return t.Ledger.Record(ctx, dropped(t.Ledger.State().Jump.Pending, why)...)
}

func dropped(p *state.Pending, why string) []op.Body {
	text := fmt.Sprintf("The jump to step %d was not made: %s.", p.To, why)
	if p.Mail != nil {
		text = fmt.Sprintf("The D-Mail to checkpoint %d was not sent: %s.", p.Mail.Checkpoint, why)
	}
	return []op.Body{&op.JumpDropped{To: p.To, Why: why}, &op.NoticeGiven{Text: text}}
}

func (t *Task) endTurn(ctx context.Context, act state.Action) (Outcome, error) {
	var bodies []op.Body
	if p := t.Ledger.State().Jump.Pending; p != nil && act.Reason == "stuck" {
		// A jump that stays pending would be made before the model reads the words with which the user answers.
		bodies = dropped(p, act.Detail)
	}
	bodies = append(bodies, &op.TurnEnded{Reason: act.Reason, Detail: act.Detail, Limit: act.Reached})
	if err := t.Ledger.Record(ctx, bodies...); err != nil {
		return Outcome{}, err
	}
	return Outcome{
		Reason: act.Reason, Limit: act.Reached, Detail: t.Ledger.Journal.RedactText(act.Detail),
		Answer: t.Ledger.State().Said.Answer, Learned: t.Ledger.State().Turn.Learned,
	}, nil
}

// leaveOpen ends the process's work on a turn that waits for an answer.
func (t *Task) leaveOpen(ctx, keep context.Context) (Outcome, error) {
	if err := t.settle(keep); err != nil || ctx.Err() != nil {
		out, ended := t.interrupted(ctx, keep)
		return out, errors.Join(err, ended)
	}
	out := Outcome{Reason: "asked", Answer: t.Ledger.State().Said.Answer}
	if q := t.Ledger.State().Questions.Open(); q != nil {
		out.Detail = q.Text
	}
	return out, nil
}

// interrupted ends the turn because ctx has ended. If the program was asked to stop, the turn stays
// open: the next process continues it. Otherwise a jump that the agent scheduled belongs to the interrupted
// step and is dropped with it.
func (t *Task) interrupted(ctx, keep context.Context) (Outcome, error) {
	if notice.Evicted(ctx) {
		detail := notice.EndedBy(ctx)
		if goal := &t.Ledger.State().Goal; len(goal.Runs) > 0 { // only named: the next process continues from here
			if best := goal.Best(); best.Better(goal.Runs[len(goal.Runs)-1]) {
				detail += fmt.Sprintf("; the check was best at step %d: %s", best.Step, best.Rating)
			}
		}
		return Outcome{Reason: "evicted", Detail: detail, Answer: t.Ledger.State().Said.Answer}, nil
	}
	if p := t.Ledger.State().Jump.Pending; p != nil && p.By == op.ByAgent {
		if err := t.dropJump(keep, "the step was interrupted"); err != nil {
			return Outcome{}, err
		}
	}
	if t.opts.Callbacks.Ask == nil { // a user at the terminal continues with the files as they are
		if err := t.endAtBest(keep, keep, true); err != nil {
			return Outcome{}, err
		}
	}
	detail := ""
	if errors.Is(context.Cause(ctx), notice.ErrStopped) {
		detail = notice.EndedBy(ctx)
	}
	if t.Ledger.State().Turn.Open {
		if err := t.Ledger.Record(keep, &op.TurnEnded{Reason: "interrupted", Detail: detail}); err != nil {
			return Outcome{}, err
		}
	}
	return Outcome{Reason: "interrupted", Detail: detail, Answer: t.Ledger.State().Said.Answer}, nil
}

// endAtBest moves the task to the step with the best check before its turn ends.
func (t *Task) endAtBest(ctx, keep context.Context, interrupted bool) error {
	for ctx.Err() == nil {
		lim := t.limits()
		lim.TimeUp = lim.TimeUp || interrupted
		act := state.Ending(t.Ledger.State(), lim)
		if act.Kind == state.ActIdle {
			return nil
		}
		if _, err := t.perform(ctx, keep, act); err != nil {
			return err
		}
	}
	return nil
}

func (t *Task) failed(ctx context.Context, f *model.Fault) (Outcome, error) {
	if err := t.Ledger.Record(ctx, &op.TurnEnded{Reason: "failed", Detail: f.Error()}); err != nil {
		return Outcome{}, err
	}
	return Outcome{Reason: "failed", Detail: f.Error(), Answer: t.Ledger.State().Said.Answer, Err: f}, nil
}

// ask sends the projection and records the reply. If the user has queued words, it records
// those instead: the next request includes them.
func (t *Task) ask(ctx, keep context.Context) (*model.Fault, error) {
	if t.opts.Callbacks.Queued != nil {
		if text := t.opts.Callbacks.Queued(); text != "" {
			return nil, t.Ledger.Say(keep, text, op.SourceSteer)
		}
	}
	if !t.awaitProvider(ctx) {
		return nil, nil
	}
	if err := t.refreshTools(ctx, keep); err != nil {
		return nil, err
	}
	st := t.Ledger.State()
	if told := state.QuarterNotice(st, t.limits()); told != nil {
		if err := t.Ledger.Record(keep, told); err != nil {
			return nil, err
		}
	}
	if st.Turn.Steps == 0 { // the user may have worked between the turns
		if _, err := t.Place.SeeNow(keep); err != nil && !errors.Is(err, workspace.ErrUnsaved) {
			return nil, err
		}
	}
	// With Once the model does not repeat a failed request itself: here each wait is an operation, which a resume
	// continues.
	req := model.Request{
		Purpose: "step", Agent: st.Opened.ParentAgent(), Turn: st.Totals.Replies, Mark: st.Opened.Mark,
		Messages: st.Context.Chat(), Tools: t.tools.Specs, Once: t.opts.Limits.Outage > 0,
	}
	if past := st.Calls.Last; past != nil {
		p := *past
		req.Last = &p
	}
	hash, err := hashRequest(req)
	if err != nil {
		return nil, err
	}
	asked := &op.ModelAsked{Hash: hash, LastSeq: st.Last, Tokens: st.Context.Tokens}
	if err := t.Ledger.Record(keep, asked); err != nil {
		return nil, err
	}
	start := t.Ledger.Now()
	streamed := false
	on, end := t.Ledger.Journal.Deltas(watched(t.opts.Callbacks.Delta, &streamed))
	asking, cancel := t.withinTime(ctx)
	defer cancel()
	reply, err := t.opts.Model.Ask(asking, req, on)
	end()
	if err != nil {
		f := t.Ledger.Journal.RedactFault(model.AsFault(err))
		if errors.Is(context.Cause(asking), notice.ErrTimeUp) {
			f.Err = notice.ErrTimeUp
		}
		rec := &op.ModelFailed{
			Error: f.Error(), Status: f.Status, Tries: max(f.Tries, 1), Partial: f.Partial,
			Overflow: f.Kind == model.FaultOverflow,
		}
		if rec.Wait = t.waitAfter(f); rec.Wait != nil && streamed {
			t.opts.Callbacks.Delta(model.Delta{Restart: true})
		}
		next, err := t.nextModel(ctx, f, rec.Wait)
		if err != nil {
			return f, errors.Join(err, t.Ledger.Record(keep, rec))
		}
		if next == nil {
			return f, t.Ledger.Record(keep, rec)
		}
		return nil, t.changeModel(keep, rec, next)
	}
	calls, refused := model.CallsOf(reply)
	replied := &op.ModelReplied{
		Text: reply.Text, Reasoning: reply.Reasoning, Calls: calls, Finish: reply.Finish,
		Usage: reply.Usage, Model: reply.Model, Extra: reply.Extra, Origin: reply.Origin, Repairs: reply.Repairs,
		Millis: t.Ledger.Now().Sub(start).Milliseconds(),
	}
	bodies := append([]op.Body{replied}, refused...)
	if text := replied.Unfinished(); text != "" && st.Turn.Empties < state.MaxEmptyReplies {
		bodies = append(bodies, &op.NoticeGiven{Text: text})
	}
	return nil, t.Ledger.Record(keep, bodies...)
}

func hashRequest(req model.Request) (string, error) {
	data, err := json.Marshal(struct {
		Messages []model.Message
		Tools    []model.ToolSpec
	}{req.Messages, req.Tools})
	if err != nil {
		return "", fmt.Errorf("hash the model request: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// refreshTools asks the sources of tools, and records a notice to the model about changes.
func (t *Task) refreshTools(ctx, keep context.Context) error {
	news, err := t.tools.Refresh(ctx)
	if err != nil || len(news) == 0 {
		return err
	}
	return t.Ledger.Record(keep, &op.NoticeGiven{Text: "[tools] " + strings.Join(news, "\n[tools] ")})
}

// runCalls runs the calls of a reply: concurrently if all only read and no order matters,
// otherwise in order. Every call gets a result, even when the turn is interrupted or its time
// is over.
func (t *Task) runCalls(ctx, keep context.Context, calls []state.CallState) error {
	if !t.tools.Asked() { // an earlier process asked the model
		if err := t.refreshTools(ctx, keep); err != nil {
			return err
		}
	}
	ctx, cancel := t.withinTime(ctx)
	defer cancel()
	readOnly, writes := len(calls) > 1, false
	for _, c := range calls {
		tl, args, err := t.tools.Registry.Validate(c.Call)
		if readOnly = readOnly && err == nil; err != nil {
			continue // it does not run
		}
		spec := tool.SpecOf(tl, args)
		readOnly = readOnly && spec.ReadOnly && !spec.Ordered
		writes = writes || !spec.ReadOnly
	}
	if err := t.Place.BeginCalls(keep, writes); err != nil {
		return err
	}
	if !readOnly {
		for _, c := range calls {
			if err := t.runner.run(ctx, c.Call); err != nil {
				return err
			}
		}
		return nil
	}
	var group errgroup.Group // without its context: a failure ends no other call
	group.SetLimit(maxReadOnlyParallel)
	for _, c := range calls {
		group.Go(func() error { return t.runner.run(ctx, c.Call) })
	}
	return group.Wait()
}

// saveWorld ends the step under way with a checkpoint.
func (t *Task) saveWorld(ctx context.Context) error {
	id := t.Ledger.State().Steps.Next()
	return t.Place.SaveStep(ctx, t.features.stepMark(id))
}

// withinTime returns a context that ends when this process's time is used up.
func (t *Task) withinTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.opts.Limits.Time <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, t.opts.Limits.Time-t.Ledger.Now().Sub(t.opts.family.begun), notice.ErrTimeUp)
}
