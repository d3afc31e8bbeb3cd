package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/guard/autorun"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/guard/quarantine"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
)

// Question is a call that waits for the user's approval.
type Question struct {
	op.Call
	Why  string // the mode or the rule that asks, as in Decision.By
	Note string // about an earlier answer
	// Like are rules that would allow this call and others like it; see Answer.Like.
	Like []approval.Rule
}

// Answer is the user's answer to a Question.
type Answer struct {
	Allow    bool
	ForTask  bool   // and everything else in this task, too
	Same     bool   // and exactly this again in this task
	Like     bool   // and what the question's Like allows in this task, unless a rule asks or refuses
	Args     string // the arguments as the user edited them; then decided anew, regardless of Allow
	Feedback string // words to the model; they survive jumps
}

// verdict is the decision on a call before it runs.
type verdict struct {
	Run    bool
	Why    string // of a refusal: shown to the model
	Args   string // as edited by the user; everything is decided anew with them
	Record []op.Body
}

// Approve decides whether a call may run, and returns the operations to record. The user's
// words with a refusal are recorded as theirs and survive jumps.
func (g *Gate) Approve(ctx context.Context, c op.Call, spec tool.Spec, args json.RawMessage, box *guard.Sandbox) (v verdict) {
	refuse := func(why string, d *op.ApprovalDecided) verdict {
		d.Call, d.Decision = c.ID, "refuse"
		return verdict{Why: why, Record: []op.Body{d}}
	}
	rules, err := g.Rules()
	if err != nil {
		return refuse(fmt.Sprintf("%s was not run: %v.", c.Name, err), &op.ApprovalDecided{By: "rules"})
	}
	line := textArg(args, spec.Command)
	facts := []approval.Facts{{Tool: c.Name, ReadOnly: spec.ReadOnly || spec.Delegates, Edits: spec.Edits, Command: line}}
	if !facts[0].ReadOnly {
		facts[0].Autorun = g.autorun(c.Name, line, spec.Edits, args)
	}
	if box.HoldsNetwork() && asksFor(args, spec.Network) {
		facts = append(facts, approval.Facts{Tool: approval.Network})
	}
	var questions []Question
	for _, f := range facts {
		mode, above := g.Mode()
		d := approval.Decide(mode, f, rules)
		if above != nil {
			d = approval.StricterDecision(d, above(f))
		}
		byMode := strings.HasPrefix(d.By, "mode:")
		if d.Verdict == approval.Ask && byMode && g.approvedLike(f) {
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
	subjects, records, missing := g.researched(c)
	if len(missing) > 0 {
		refused := &op.ApprovalDecided{By: state.ByResearchGuard}
		for _, s := range missing {
			refused.Subjects = append(refused.Subjects, s.ID)
		}
		return refuse(g.researchRefusal(c.Name, missing), refused)
	}
	v.Run = true
	if len(subjects) > 0 {
		v.Record = []op.Body{&op.ApprovalDecided{Call: c.ID, Decision: "allow", By: state.ByResearchGuard, Subjects: subjects, Research: records}}
	}
	print := func(q op.Call) string { return consent.Fingerprint(q.Name, string(args), line, g.place.Dir) }
	for _, q := range questions {
		asked := g.askApproval(ctx, c.Name, q, print)
		asked.Record = append(v.Record, asked.Record...)
		if v = asked; !v.Run {
			return v
		}
	}
	return v
}

// Mode returns the current approval mode, and the parent's decision function. An answer for
// the whole task changes both, while other calls of its reply run.
func (g *Gate) Mode() (approval.Mode, func(approval.Facts) approval.Decision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.o.Mode, g.o.Above
}

// Rules returns the rules that apply to the task in this process.
func (g *Gate) Rules() ([]approval.Rule, error) {
	out := slices.Clone(g.o.Rules)
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
	o := &g.State().Opened
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

// textArg returns an argument that is a text, empty if there is none.
func textArg(args json.RawMessage, name string) string {
	var values map[string]json.RawMessage
	var text string
	if name == "" || json.Unmarshal(args, &values) != nil || json.Unmarshal(values[name], &text) != nil {
		return ""
	}
	return text
}

// approvedSame reports whether a user approved exactly this call for the whole task, possibly
// with a call of this reply.
func (g *Gate) approvedSame(print string) bool {
	known := false
	g.Journal.Look(func(_ journal.Public, queue []op.Op) {
		known = g.State().Grants.Prints[print] || slices.ContainsFunc(queue, func(o op.Op) bool {
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
	g.Journal.Look(func(_ journal.Public, queue []op.Op) {
		texts = slices.Clone(g.State().Grants.Rules)
		for _, o := range queue {
			if b, ok := o.Body.(*op.ApprovalDecided); ok {
				texts = append(texts, b.Rules...)
			}
		}
	})
	rules, err := approval.ParseRules(texts, approval.Allow, "this task")
	return err == nil && len(rules) > 0 && approval.Decide(approval.ModeDeny, f, rules).Verdict == approval.Allow
}

// asksFor reports whether a boolean argument of a call is true.
func asksFor(args json.RawMessage, name string) bool {
	var values map[string]json.RawMessage
	return name != "" && json.Unmarshal(args, &values) == nil && string(values[name]) == "true"
}

// askApproval asks the user about a call of a tool, or about a further request of it. Exactly
// what the user sees runs: if the call's print differs after the answer, a script was
// exchanged meanwhile, and the call does not run.
func (g *Gate) askApproval(ctx context.Context, tool string, q Question, print func(op.Call) string) verdict {
	c := q.Call
	refused := &op.ApprovalDecided{Call: c.ID, Decision: "refuse"}
	no := func(why string) verdict { return verdict{Why: why, Record: []op.Body{refused}} }
	before := print(c)
	if g.approvedSame(before) {
		return verdict{Run: true, Record: []op.Body{&op.ApprovalDecided{Call: c.ID, Decision: "allow", By: op.ByUser, Print: before}}}
	}
	if g.o.Approve == nil {
		refused.By = "nobody"
		why := ""
		if files, ok := strings.CutPrefix(q.Why, approval.ByAutorun); ok {
			why = " Other programs run by themselves what it writes: " + files + ". Only approval mode auto allows that without a user."
		}
		return no("Refused: this call needs a user's approval and no user is present to give it." + why)
	}
	if err := g.place.BeforeWait(context.WithoutCancel(ctx)); err != nil {
		return no(fmt.Sprintf("%s was not run: %v.", c.Name, err))
	}
	a := g.answerFor(ctx, tool, q)
	if ctx.Err() != nil {
		return verdict{Why: "Not run: " + notice.EndedBy(ctx) + "."}
	}
	if a.Args != "" {
		return verdict{Args: a.Args, Record: []op.Body{&op.ApprovalDecided{Call: c.ID, Decision: "edit", By: op.ByUser, Args: a.Args}}}
	}
	if a.Allow && print(c) != before {
		refused.By = "guard:changed"
		return no("Not run: a script that this call runs was changed while the user was asked about it. Make the call again to have it looked at as it is now.")
	}
	if a.Allow {
		if a.ForTask {
			g.mu.Lock()
			g.o.Mode, g.o.Above = approval.ModeAuto, nil
			g.mu.Unlock()
		}
		allowed := &op.ApprovalDecided{Call: c.ID, Decision: "allow", By: op.ByUser, ForTask: a.ForTask, Print: before, Same: a.Same}
		if a.Like {
			allowed.Rules = approval.Texts(q.Like, approval.Allow)
		}
		return verdict{Run: true, Record: []op.Body{allowed}}
	}
	refused.By, refused.Feedback = op.ByUser, a.Feedback
	v := no("Refused by the user.")
	if a.Feedback != "" {
		v.Record = append(v.Record, &op.UserSaid{Text: a.Feedback, Source: op.SourceRejection})
	}
	return v
}

// answerFor asks until the answer is usable: edited arguments must be valid and differ from
// the call's.
func (g *Gate) answerFor(ctx context.Context, tool string, q Question) Answer {
	g.o.Asking.Lock()
	defer g.o.Asking.Unlock()
	c := q.Call
	for {
		a := g.o.Approve(ctx, q)
		if a.Args == "" || ctx.Err() != nil {
			return a
		}
		_, _, err := g.o.Tools().Validate(op.Call{ID: c.ID, Name: tool, Args: a.Args})
		if err == nil && op.CanonicalArgs(a.Args) != op.CanonicalArgs(c.Args) {
			return a
		}
		if q.Note = "Nothing was edited."; err != nil {
			why, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), tool+" was not run: "), " Expected: ") // what follows is for the model
			q.Note = "Not taken: " + why
		}
	}
}
