package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/workspace"
)

// user is the person whom a task may ask. Its methods may be called from any goroutine.
type user struct {
	place     *workspace.Place
	callbacks *Callbacks
	desk      *question.Desk   // of the family
	task      string           // of a subagent; empty: the desk's own
	hold      *taskdir.LiveDir // of a subagent
	notify    func(kind, text string)
}

// answers reports whether questions get an answer: from a user who is present, or from elsewhere.
func (u *user) answers() bool { return u.callbacks.Ask != nil || u.desk.Asks() }

// ask asks one question at a time, and makes the answer durable as the user's words.
func (u *user) ask(ctx context.Context, q op.QuestionAsked) (answer string, ok bool, err error) {
	keep := context.WithoutCancel(ctx)
	// Between replies no call of this program has changed files since the last look.
	if u.place.State().Reply != nil {
		if err := u.place.BeforeWait(keep); err != nil {
			return "", false, err
		}
	}
	var here func(context.Context) (op.Answer, bool)
	if u.callbacks.Ask != nil {
		text := u.place.Journal.RedactText(q.Text)
		here = func(ctx context.Context) (op.Answer, bool) {
			text, ok := u.callbacks.Ask(ctx, text)
			return op.Answer{Text: text}, ok && strings.TrimSpace(text) != ""
		}
	}
	q.Task = u.task
	u.notify("elicitation_dialog", q.Text)
	a, ok, err := u.desk.Ask(ctx, &q, u.hold, here)
	if answer = strings.TrimSpace(a.Text); !ok || err != nil {
		return "", false, err
	}
	said := &op.UserSaid{Text: answer, Source: op.SourceAnswer, Question: q.Text}
	return answer, true, u.place.Journal.Post(keep, said)
}

// approve asks whether a call may run; nil if nobody can answer.
func (u *user) approve() func(ctx context.Context, q gate.Question) (gate.Answer, bool, error) {
	approve := u.callbacks.Approve
	if approve == nil && !u.desk.Asks() {
		return nil
	}
	return func(ctx context.Context, q gate.Question) (gate.Answer, bool, error) {
		var here func(context.Context) (op.Answer, bool)
		if approve != nil {
			here = func(ctx context.Context) (op.Answer, bool) { a := approve(ctx, q); return a, ctx.Err() == nil }
		}
		text := fmt.Sprintf("May %s run?", tool.Display(q.Call, u.place.Dir))
		if q.Name == approval.Network {
			command := op.Call{Name: "Bash", Args: q.Args}
			text = fmt.Sprintf("May %s reach the network?", tool.Display(command, u.place.Dir))
		}
		u.notify("permission_prompt", text)
		return u.desk.Ask(ctx, &op.QuestionAsked{
			About: op.AboutCall, Text: text, Task: u.task, Call: q.ID, Name: q.Name, Args: q.Args, Why: q.Why,
			Print: q.Print, Note: q.Note,
		}, u.hold, here)
	}
}

// askAndGoOn asks the user about what ends the turn otherwise; without an answer it ends.
func (t *Task) askAndGoOn(ctx, keep context.Context, act state.Action) (goOn bool, out Outcome, err error) {
	if act.Reached != "" {
		goOn, err = t.raiseLimit(ctx, keep, act)
	} else {
		var answer string
		answer, goOn, err = t.user.ask(ctx, op.QuestionAsked{About: op.AboutStrategy, Text: act.Question})
		// Words that are neither yes nor no are advice: the turn continues with them.
		a, other := question.Parse(&op.QuestionAsked{About: op.AboutCall}, answer)
		goOn = goOn && !(act.Refusable && other == nil && !a.Allow)
	}
	if err = errors.Join(err, t.Ledger.ApplyQueued()); goOn || err != nil {
		return goOn, Outcome{}, err
	}
	if ctx.Err() != nil {
		out, err = t.interrupted(ctx, keep)
		return false, out, err
	}
	if act.Reached != "" { // the refusal is recorded: what comes next ends the turn
		return true, Outcome{}, nil
	}
	out, err = t.endTurn(keep, act)
	return false, out, err
}

func (t *Task) raiseLimit(ctx, keep context.Context, act state.Action) (bool, error) {
	q := &op.QuestionAsked{About: op.AboutLimit, Text: act.Question, Limit: act.Reached}
	a, ok, err := t.user.desk.Ask(ctx, q, nil, nil)
	if !ok || !a.Allow || err != nil {
		return false, err
	}
	lim := &t.opts.Limits
	now := lim.Limits
	// 0 stands for the default, and the answer "as much again" needs the number that was reached.
	if now.Steps == 0 && act.Reached == op.LimitSteps {
		now.Steps = state.DefaultMaxSteps
	}
	raised, err := question.Raised(now, act.Reached, a.Text, t.Ledger.Now().Sub(t.opts.family.begun))
	if err != nil {
		return false, err
	}
	lim.Limits = raised
	return true, t.Ledger.Record(keep, &op.TaskResumed{Program: t.opts.Program, Limits: &raised})
}

// askAboutProvider asks a user to correct why the provider refuses every request, and reports whether it is to
// be asked again.
func (t *Task) askAboutProvider(ctx context.Context, f *model.Fault) (again bool, err error) {
	remedy := map[int]string{
		401: "correct the API key where key_command finds it",
		402: "add credit at the provider",
		404: "make the model available, such as by pulling it, or end the turn and continue with another model",
	}[f.Status]
	if errors.Is(f.Err, model.ErrNoKey) {
		remedy = "correct key_command in config.yaml, or what it reads"
	}
	if remedy == "" || !t.user.desk.Asks() {
		return false, nil
	}
	text := fmt.Sprintf("The provider refuses every request: %s. Ask it again? First %s.",
		strings.TrimRight(f.Error(), "."), remedy)
	q := &op.QuestionAsked{About: op.AboutProvider, Task: t.user.task, Text: text}
	a, ok, err := t.user.desk.Ask(ctx, q, t.user.hold, nil)
	return ok && a.Allow, err
}
