package orchestrator

import (
	"context"
	"encoding/json"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/tool"
)

// approve lets a call run or not, and gives what there is to record of it. The
// reason of a refusal is what the model is shown; a person's word with it is
// recorded as theirs and survives any jump.
func (t *Task) approve(ctx context.Context, c op.Call, spec tool.Spec, args json.RawMessage, box *guard.Sandbox) (ok bool, why string, decision []op.Body) {
	facts := []guard.Facts{{Tool: c.Name, ReadOnly: spec.ReadOnly, Edits: spec.Edits}}
	if box.HoldsNetwork() && asksFor(args, spec.Network) {
		facts = append(facts, guard.Facts{Tool: guard.Network})
	}
	var questions []op.Call
	for _, f := range facts {
		d := guard.Decide(guard.Mode(t.approval), f, nil)
		switch d.Verdict {
		case guard.Refuse:
			return false, d.Text, []op.Body{&op.ApprovalDecided{Call: c.ID, Decision: "refuse", By: d.By}}
		case guard.Ask:
			questions = append(questions, op.Call{ID: c.ID, Name: f.Tool, Args: c.Args})
		}
	}
	subjects, records, missing := t.researched(c)
	if len(missing) > 0 {
		refused := &op.ApprovalDecided{Call: c.ID, Decision: "refuse", By: byResearchGuard}
		for _, s := range missing {
			refused.Subjects = append(refused.Subjects, s.ID)
		}
		return false, t.researchRefusal(c.Name, missing), []op.Body{refused}
	}
	if len(subjects) > 0 {
		decision = []op.Body{&op.ApprovalDecided{Call: c.ID, Decision: "allow", By: byResearchGuard, Subjects: subjects, Research: records}}
	}
	for _, q := range questions {
		ok, why, asked := t.askApproval(ctx, q)
		decision = append(decision, asked...)
		if !ok {
			return false, why, decision
		}
	}
	return true, "", decision
}

// asksFor reports whether a call sets an argument that is true or false.
func asksFor(args json.RawMessage, name string) bool {
	var values map[string]json.RawMessage
	return name != "" && json.Unmarshal(args, &values) == nil && string(values[name]) == "true"
}

// askApproval puts a call, or what it asks for beside, before the person.
func (t *Task) askApproval(ctx context.Context, c op.Call) (ok bool, why string, decision []op.Body) {
	refused := &op.ApprovalDecided{Call: c.ID, Decision: "refuse"}
	if t.opts.Approve == nil {
		refused.By = "nobody"
		return false, "Refused: this call needs a person's approval and nobody is there to give it.", []op.Body{refused}
	}
	a := t.opts.Approve(ctx, c)
	if ctx.Err() != nil {
		return false, "Not run: the person interrupted the turn.", nil
	}
	if a.Allow {
		if a.ForTask {
			t.approval = string(guard.ModeAuto)
		}
		return true, "", []op.Body{&op.ApprovalDecided{Call: c.ID, Decision: "allow", By: byPerson, ForTask: a.ForTask}}
	}
	refused.By, refused.Feedback = byPerson, a.Feedback
	decision = []op.Body{refused}
	if a.Feedback != "" {
		decision = append(decision, &op.UserSaid{Text: a.Feedback, Source: op.SourceRejection})
	}
	return false, "Refused by the person.", decision
}
