package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/guard/autorun"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/guard/quarantine"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
)

// Question is a call that waits for the user's approval.
type Question struct {
	op.Call
	Why  string // the mode or the rule that asks, as in Decision.By
	Note string // about an earlier answer
	// Like are rules that would allow this call and others like it; see Answer.Like.
	Like  []approval.Rule
	Print string // see op.ApprovalDecided
}

// QuestionOf returns a recorded question about a call.
func QuestionOf(q *op.QuestionAsked) Question {
	return Question{Call: op.Call{ID: q.Call, Name: q.Name, Args: q.Args}, Why: q.Why, Note: q.Note, Print: q.Print}
}

// Answer is the user's answer to a Question.
type Answer = op.Answer

// CheckRules decides by the mode and the rules whether a call may run. It prepares the questions
// that AskUser asks.
func (g *Gate) CheckRules(_ context.Context, c *Call) ([]op.Body, error) {
	rules, err := g.Rules()
	if err != nil {
		return c.Refuse(fmt.Sprintf("%s was not run: %v.", c.Name, err),
			&op.ApprovalDecided{Call: c.ID, Decision: "refuse", By: "rules"}), nil
	}
	line := c.command()
	reads := c.Spec.ReadOnly || c.Spec.Delegates || c.Reads
	facts := []approval.Facts{{Tool: c.Name, ReadOnly: reads, Edits: c.Spec.Edits, Command: line}}
	if !facts[0].ReadOnly {
		facts[0].Autorun = g.autorun(c.Name, line, c.Spec.Edits, c.Input)
	}
	// The network is decided on like a tool of its own: what allows the command does not allow that.
	if c.Env.Sandbox.HoldsNetwork() && string(arg(c.Input, c.Spec.Network)) == "true" {
		facts = append(facts, approval.Facts{Tool: approval.Network})
	}
	for _, f := range facts {
		mode, above := g.Mode()
		d := approval.Decide(mode, f, rules)
		if above != nil {
			d = approval.StricterDecision(d, above(f))
		}
		byMode := strings.HasPrefix(d.By, "mode:") // an earlier answer about like calls overrides no rule
		// A hook may ask about what a rule allows. Its permission replaces the question of the mode only, not that of a
		// user's rule or about the network.
		if own := f.Tool == c.Name; own && c.HookAsks && d.Verdict == approval.Allow {
			d.Verdict, d.By = approval.Ask, "hook"
		} else if own && c.HookAllows && d.Verdict == approval.Ask && byMode {
			c.Record = append(c.Record, &op.ApprovalDecided{Call: c.ID, Decision: "allow", By: "hook"})
			continue
		}
		if d.Verdict == approval.Ask && byMode && g.approvedLike(f) {
			continue
		}
		switch d.Verdict {
		case approval.Refuse:
			return c.Refuse(d.Text, &op.ApprovalDecided{Call: c.ID, Decision: "refuse", By: d.By}), nil
		case approval.Ask:
			q := Question{Call: op.Call{ID: c.ID, Name: f.Tool, Args: c.Args}, Why: d.By}
			if byMode {
				q.Like = approval.Suggest(f)
			}
			c.questions = append(c.questions, q)
		}
	}
	return nil, nil
}

// command returns the command line of a call, empty if it has none.
func (c *Call) command() string { return TextArg(c.Input, c.Spec.Command) }

// Mode returns the current approval mode, and the parent's decision function. An answer for
// the whole task changes both, while other calls of its reply run.
func (g *Gate) Mode() (approval.Mode, func(approval.Facts) approval.Decision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.o.Mode, g.o.Above
}

// SetMode changes the approval mode for later calls.
func (g *Gate) SetMode(mode approval.Mode) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.o.Mode = mode
}

// Rules returns the rules that apply to the task in this process.
func (g *Gate) Rules() ([]approval.Rule, error) {
	o := &g.place.State().Opened
	out, err := approval.ParseRules("this task", o.Allow, o.Ask, o.Deny)
	if o.Agent != nil && err == nil {
		var own []approval.Rule
		own, err = approval.ParseRules("agent "+o.Agent.Name, o.Agent.Allow, o.Agent.Ask, o.Agent.Deny)
		out = append(out, own...)
	}
	return append(slices.Clone(g.o.Rules), out...), err
}

// autorun lists the files that a call would write, as far as its arguments show them, and that other
// programs run by themselves.
func (g *Gate) autorun(name, line string, edits bool, args json.RawMessage) (out []string) {
	var found []autorun.File
	switch {
	case line != "":
		found = autorun.Written(g.place.Dir, line)
	case edits || strings.HasPrefix(name, tool.MCPPrefix):
		for _, path := range file.Paths(name, args) {
			if f := autorun.Named(g.place.Dir, path); f.By != "" {
				found = append(found, f)
			} else if by := quarantine.Named(g.place.Dir, path); edits && by != "" {
				found = append(found, autorun.File{Path: path, By: by})
			}
		}
	}
	for _, f := range found {
		out = append(out, f.String())
	}
	return out
}

// TextArg returns an argument that is a text, empty if there is none.
func TextArg(args json.RawMessage, name string) (text string) {
	_ = json.Unmarshal(arg(args, name), &text)
	return text
}

// arg returns an argument as it is written, nil if there is none.
func arg(args json.RawMessage, name string) json.RawMessage {
	var values map[string]json.RawMessage
	_ = json.Unmarshal(args, &values)
	return values[name]
}

// approvedSame reports whether a user approved exactly this call for the whole task, possibly
// with a call of this reply.
func (g *Gate) approvedSame(print string) bool {
	known := false
	g.place.Journal.ReadQueue(func(queue []op.Op) {
		known = g.place.State().Grants.Prints[print] || slices.ContainsFunc(queue, func(o op.Op) bool {
			b, ok := o.Body.(*op.ApprovalDecided)
			return ok && b.Same && b.Print == print
		})
	})
	return known
}

// approvedLike reports whether rules that a user gave for the whole task allow a call,
// possibly with a call of this reply.
func (g *Gate) approvedLike(f approval.Facts) bool {
	var texts []string
	g.place.Journal.ReadQueue(func(queue []op.Op) {
		texts = slices.Clone(g.place.State().Grants.Rules)
		for _, o := range queue {
			if b, ok := o.Body.(*op.ApprovalDecided); ok {
				texts = append(texts, b.Rules...)
			}
		}
	})
	rules, err := approval.ParseRules("this task", texts, nil, nil)
	// In mode deny the mode allows nothing that changes something, so that an Allow comes from these rules.
	return err == nil && approval.Decide(approval.ModeDeny, f, rules).Verdict == approval.Allow
}

// AskUser asks the questions of a call. Exactly what the user sees runs: if the call's print
// differs after the answer, a script was exchanged meanwhile, and the call does not run. The
// user's words with a refusal are recorded as theirs and survive jumps.
func (g *Gate) AskUser(ctx context.Context, c *Call) ([]op.Body, error) {
	for _, q := range c.questions {
		refusal, err := g.ask(ctx, c, q)
		if refusal != nil || err != nil || c.Edited != "" {
			return refusal, err
		}
	}
	return nil, nil
}

func (g *Gate) ask(ctx context.Context, c *Call, q Question) ([]op.Body, error) {
	print := func() string { return consent.Fingerprint(q.Name, string(c.Input), c.command(), g.place.Dir) }
	refuse := func(by, why string) []op.Body {
		return c.Refuse(why, &op.ApprovalDecided{Call: c.ID, Decision: "refuse", By: by})
	}
	before := print()
	q.Print = before
	always, err := g.o.Trust.Approved(g.approvalOf(q))
	if err != nil {
		return refuse("", fmt.Sprintf("%s was not run: %v.", c.Name, err)), nil
	}
	if always || g.approvedSame(before) {
		c.Record = append(c.Record,
			&op.ApprovalDecided{Call: c.ID, Decision: "allow", By: op.ByUser, Print: before, Always: always})
		return nil, nil
	}
	if g.o.Approve == nil {
		why := ""
		if files, ok := strings.CutPrefix(q.Why, approval.ByAutorun); ok {
			why = " Other programs run by themselves what it writes: " + files +
				". Only approval mode auto allows that without a user."
		}
		return refuse("nobody",
			"Refused: this call needs a user's approval and no user is present to give it."+why), nil
	}
	// What the user answers is recorded also where the task is being stopped meanwhile.
	keep := context.WithoutCancel(ctx)
	// What changes in the directory while the user is asked is the user's.
	if err := g.place.BeforeWait(keep); err != nil {
		return refuse("", fmt.Sprintf("%s was not run: %v.", c.Name, err)), nil
	}
	a, err := g.answerFor(ctx, c.Name, q)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return c.Refuse("Not run: " + notice.EndedBy(ctx) + "."), nil
	}
	if a.Args != "" {
		c.Edited = a.Args // recorded now, for the edited call meets every check from the first on
		edited := append(c.Record, &op.ApprovalDecided{Call: c.ID, Decision: "edit", By: op.ByUser, Args: a.Args})
		return nil, g.place.Journal.Post(keep, edited...)
	}
	if !a.Allow {
		refused := []op.Body{&op.ApprovalDecided{Call: c.ID, Decision: "refuse", By: op.ByUser, Feedback: a.Text}}
		if a.Text != "" {
			refused = append(refused, &op.UserSaid{Text: a.Text, Source: op.SourceRejection})
		}
		return c.Refuse("Refused by the user.", refused...), nil
	}
	if print() != before {
		return refuse("guard:changed", "Not run: a script that this call runs was changed while the user was asked "+
			"about it. Make the call again to have it looked at as it is now."), nil
	}
	if a.ForTask {
		g.mu.Lock()
		g.o.Mode, g.o.Above = approval.ModeAuto, nil
		g.mu.Unlock()
	}
	allowed := &op.ApprovalDecided{Call: c.ID, Decision: "allow", By: op.ByUser, ForTask: a.ForTask, Print: before,
		Same: a.Same, Always: a.Always}
	if a.Always && g.o.Trust != nil {
		if err := g.o.Trust.Approve(g.approvalOf(q)); err != nil {
			return refuse("", fmt.Sprintf("%s was not run: %v.", c.Name, err)), nil
		}
	}
	if a.Like {
		allowed.Rules = approval.Texts(q.Like, approval.Allow)
	}
	c.Record = append(c.Record, allowed)
	return nil, nil
}

// answerFor asks until the answer is usable: edited arguments must be valid and differ from
// the call's. Without an answer, it refuses.
func (g *Gate) answerFor(ctx context.Context, tool string, q Question) (Answer, error) {
	c := q.Call
	for {
		a, ok, err := g.o.Approve(ctx, q)
		if a.Args == "" || !ok || err != nil || ctx.Err() != nil {
			return a, err
		}
		_, _, err = g.o.Tools().Validate(op.Call{ID: c.ID, Name: tool, Args: a.Args})
		if err == nil && op.CanonicalArgs(a.Args) != op.CanonicalArgs(c.Args) {
			return a, nil
		}
		if q.Note = "Nothing was edited."; err != nil {
			// What follows "Expected" is for the model.
			why, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), tool+" was not run: "), " Expected: ")
			q.Note = "Not taken: " + why
		}
	}
}

// KindCall is the kind of the approvals of calls that always run in a directory.
const KindCall = "call"

// maxCallName bounds the name of such an approval, in bytes. Of two calls that differ only beyond it, the last
// one approved runs.
const maxCallName = 400

func (g *Gate) approvalOf(q Question) consent.Approval {
	what := cmp.Or(TextArg(json.RawMessage(q.Args), "command"), op.CanonicalArgs(q.Args))
	name := quote.OneLine(q.Name+"("+what+")", maxCallName)
	return consent.Approval{Kind: KindCall, Name: name, Dir: g.place.Dir, Hash: q.Print}
}
