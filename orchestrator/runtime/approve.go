package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
)

// Question is a call that waits for the user's approval.
type Question struct {
	op.Call
	Why  string // a guard.Decision's By: the mode or the rule that asks
	Note string // what became of an earlier answer
	// Like are rules that would allow this call and others like it; see Answer.Like.
	Like []approval.Rule
}

// Answer is the user's answer to a Question.
type Answer struct {
	Allow    bool
	ForTask  bool   // and everything else in this task, too
	Same     bool   // and exactly this again in this task
	Like     bool   // and what the question's Like allows in this task, unless a rule asks or refuses
	Args     string // what the user put in place of the arguments; decided anew, whatever Allow says
	Feedback string // a word to the model; it survives any jump
}

// verdict is what became of a call before it runs.
type verdict struct {
	run    bool
	why    string // of a refusal: what the model is shown
	args   string // the user's, in place of the call's; everything is decided anew with them
	record []op.Body
}

// approve lets a call run or not, and returns what there is to record of it. The
// user's word with a refusal is recorded as theirs and survives any jump.
func (t *Task) approve(ctx context.Context, c op.Call, spec tool.Spec, args json.RawMessage, box *guard.Sandbox) (v verdict) {
	refuse := func(why string, d *op.ApprovalDecided) verdict {
		d.Call, d.Decision = c.ID, "refuse"
		return verdict{why: why, record: []op.Body{d}}
	}
	rules, err := t.rules()
	if err != nil {
		return refuse(fmt.Sprintf("%s was not run: %v.", c.Name, err), &op.ApprovalDecided{By: "rules"})
	}
	line := textArg(args, spec.Command)
	facts := []approval.Facts{{Tool: c.Name, ReadOnly: spec.ReadOnly || spec.Delegates, Edits: spec.Edits, Command: line}}
	if box.HoldsNetwork() && asksFor(args, spec.Network) {
		facts = append(facts, approval.Facts{Tool: approval.Network})
	}
	var questions []Question
	for _, f := range facts {
		mode, above := t.mode()
		d := approval.Decide(mode, f, rules)
		if above != nil {
			d = approval.StricterDecision(d, above(f))
		}
		byMode := strings.HasPrefix(d.By, "mode:")
		if d.Verdict == approval.Ask && byMode && t.approvedLike(f) {
			continue
		}
		switch d.Verdict {
		case approval.Refuse:
			return refuse(d.Text, &op.ApprovalDecided{By: d.By})
		case approval.Ask:
			q := Question{Call: op.Call{ID: c.ID, Name: f.Tool, Args: c.Args}, Why: d.By}
			if byMode {
				q.Like = approval.Suggest(f)
			}
			questions = append(questions, q)
		}
	}
	subjects, records, missing := t.researched(c)
	if len(missing) > 0 {
		refused := &op.ApprovalDecided{By: state.ByResearchGuard}
		for _, s := range missing {
			refused.Subjects = append(refused.Subjects, s.ID)
		}
		return refuse(t.researchRefusal(c.Name, missing), refused)
	}
	v.run = true
	if len(subjects) > 0 {
		v.record = []op.Body{&op.ApprovalDecided{Call: c.ID, Decision: "allow", By: state.ByResearchGuard, Subjects: subjects, Research: records}}
	}
	print := func(q op.Call) string { return guard.Fingerprint(q.Name, string(args), line, t.Dir) }
	for _, q := range questions {
		asked := t.askApproval(ctx, c.Name, q, print)
		asked.record = append(v.record, asked.record...)
		if v = asked; !v.run {
			return v
		}
	}
	return v
}

// mode is the approval mode as it is now, and what a parent decides above it: an
// answer for the whole task changes both, while other calls of its reply run.
func (t *Task) mode() (approval.Mode, func(approval.Facts) approval.Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return approval.Mode(t.approval), t.opts.above
}

// rules are the standing answers that hold for the task in this process.
func (t *ledger) rules() ([]approval.Rule, error) {
	out := slices.Clone(t.opts.Rules)
	add := func(from string, allow, ask, deny []string) error {
		for _, list := range []struct {
			texts   []string
			verdict approval.Verdict
		}{{allow, approval.Allow}, {ask, approval.Ask}, {deny, approval.Refuse}} {
			rules, err := approval.ParseRules(list.texts, list.verdict, from)
			if err != nil {
				return err
			}
			out = append(out, rules...)
		}
		return nil
	}
	o := &t.state.Opened
	if err := add("this task", o.Allow, o.Ask, o.Deny); err != nil {
		return nil, err
	}
	if o.Agent != nil {
		if err := add("agent "+o.Agent.Name, o.Agent.Allow, o.Agent.Ask, o.Agent.Deny); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ruleTexts are the rules of one verdict as they are written.
func ruleTexts(rules []approval.Rule, v approval.Verdict) []string {
	var out []string
	for _, r := range rules {
		if r.Verdict == v {
			out = append(out, r.String())
		}
	}
	return out
}

// textArg is an argument that is a text; empty where a call has none.
func textArg(args json.RawMessage, name string) string {
	var values map[string]json.RawMessage
	var text string
	if name == "" || json.Unmarshal(args, &values) != nil || json.Unmarshal(values[name], &text) != nil {
		return ""
	}
	return text
}

// approvedSame reports whether a user approved exactly this for the whole task,
// with a call of this reply, perhaps.
func (t *ledger) approvedSame(print string) bool {
	known := false
	t.journal.Look(func(_ journal.Public, queue []op.Op) {
		known = t.state.Prints[print] || slices.ContainsFunc(queue, func(o op.Op) bool {
			b, ok := o.Body.(*op.ApprovalDecided)
			return ok && b.Same && b.Print == print
		})
	})
	return known
}

// approvedLike reports whether rules that a user gave with an answer for the whole task
// allow a call, with a call of this reply, perhaps.
func (t *ledger) approvedLike(f approval.Facts) bool {
	var texts []string
	t.journal.Look(func(_ journal.Public, queue []op.Op) {
		texts = slices.Clone(t.state.Allowed)
		for _, o := range queue {
			if b, ok := o.Body.(*op.ApprovalDecided); ok {
				texts = append(texts, b.Rules...)
			}
		}
	})
	rules, err := approval.ParseRules(texts, approval.Allow, "this task")
	return err == nil && len(rules) > 0 && approval.Decide(approval.ModeDeny, f, rules).Verdict == approval.Allow
}

// asksFor reports whether a call sets an argument that is true or false.
func asksFor(args json.RawMessage, name string) bool {
	var values map[string]json.RawMessage
	return name != "" && json.Unmarshal(args, &values) == nil && string(values[name]) == "true"
}

// askApproval puts a call of a tool, or what it asks for beside, before the user.
// What the user sees is what runs: where the print of the call is another after
// the answer, a script has been exchanged meanwhile, and it does not run.
func (t *Task) askApproval(ctx context.Context, tool string, q Question, print func(op.Call) string) verdict {
	c := q.Call
	refused := &op.ApprovalDecided{Call: c.ID, Decision: "refuse"}
	no := func(why string) verdict { return verdict{why: why, record: []op.Body{refused}} }
	before := print(c)
	if t.approvedSame(before) {
		return verdict{run: true, record: []op.Body{&op.ApprovalDecided{Call: c.ID, Decision: "allow", By: state.ByUser, Print: before}}}
	}
	if t.opts.Approve == nil {
		refused.By = "nobody"
		return no("Refused: this call needs a person's approval and nobody is there to give it.")
	}
	if err := t.beforeWait(context.WithoutCancel(ctx)); err != nil {
		return no(fmt.Sprintf("%s was not run: %v.", c.Name, err))
	}
	a := t.answerFor(ctx, tool, q)
	if ctx.Err() != nil {
		return verdict{why: "Not run: " + endedBy(ctx) + "."}
	}
	if a.Args != "" {
		return verdict{args: a.Args, record: []op.Body{&op.ApprovalDecided{Call: c.ID, Decision: "edit", By: state.ByUser, Args: a.Args}}}
	}
	if a.Allow && print(c) != before {
		refused.By = "guard:changed"
		return no("Not run: a script that this call runs was changed while the person was asked about it. Make the call again to have it looked at as it is now.")
	}
	if a.Allow {
		if a.ForTask {
			t.mu.Lock()
			t.approval, t.opts.above = string(approval.ModeAuto), nil
			t.mu.Unlock()
		}
		allowed := &op.ApprovalDecided{Call: c.ID, Decision: "allow", By: state.ByUser, ForTask: a.ForTask, Print: before, Same: a.Same}
		if a.Like {
			allowed.Rules = ruleTexts(q.Like, approval.Allow)
		}
		return verdict{run: true, record: []op.Body{allowed}}
	}
	refused.By, refused.Feedback = state.ByUser, a.Feedback
	v := no("Refused by the person.")
	if a.Feedback != "" {
		v.record = append(v.record, &op.UserSaid{Text: a.Feedback, Source: op.SourceRejection})
	}
	return v
}

// answerFor asks until the answer is one: arguments that the user put in place of
// a call's must be valid and others than the call's.
func (t *toolset) answerFor(ctx context.Context, tool string, q Question) Answer {
	t.opts.family.askMu.Lock()
	defer t.opts.family.askMu.Unlock()
	c := q.Call
	for {
		a := t.opts.Approve(ctx, q)
		if a.Args == "" || ctx.Err() != nil {
			return a
		}
		_, _, err := t.tools.Validate(op.Call{ID: c.ID, Name: tool, Args: a.Args})
		if err == nil && op.CanonicalArgs(a.Args) != op.CanonicalArgs(c.Args) {
			return a
		}
		if q.Note = "Nothing was edited."; err != nil {
			q.Note = "Not taken: " + err.Error()
		}
	}
}
