package state

import (
	"fmt"
	"slices"
	"strings"

	"anamnesis/opstream/op"
)

// Questions are a task's questions to a user that have not been acted on, oldest first.
type Questions []Question

// Question is one question, and its answer once there is one.
type Question struct {
	op.QuestionAsked
	Seq    uint64               `json:"op"`
	Answer *op.QuestionAnswered `json:"answer,omitempty"`
}

// Fold applies an operation. A question goes when what asked it has gone on or has ended.
func (qs *Questions) Fold(o op.Op) {
	drop := func(moot func(q Question) bool) { *qs = slices.DeleteFunc(*qs, moot) }
	about := func(what string) { drop(func(q Question) bool { return q.About == what && q.Task == "" }) }
	switch b := o.Body.(type) {
	case *op.QuestionAsked:
		*qs = append(*qs, Question{QuestionAsked: *b, Seq: o.Seq})
	case *op.QuestionAnswered:
		i := slices.IndexFunc(*qs, func(q Question) bool { return q.Seq == b.Asked })
		if i >= 0 && (*qs)[i].Answer == nil {
			(*qs)[i].Answer = b
		}
	case *op.ToolReturned:
		drop(func(q Question) bool { return q.Call == b.Call && q.Task == "" && q.Call != "" })
	case *op.ModelReplied:
		about(op.AboutProvider)
	case *op.UserSaid:
		about(op.AboutStrategy)
	case *op.TaskResumed:
		if b.Limits != nil {
			about(op.AboutLimit)
		}
	case *op.SubagentEnded:
		// A subagent that stopped for another reason, such as the end of its process, asks the same again when it goes
		// on.
		if b.Reason == "done" || b.Reason == "interrupted" {
			drop(func(q Question) bool { return q.Task == b.Task })
		}
	case *op.TurnEnded:
		*qs = nil
	}
}

// Open returns the question that waits for an answer; nil: none does.
func (qs Questions) Open() *Question {
	for i := range slices.Backward(qs) {
		if qs[i].Answer == nil {
			return &qs[i]
		}
	}
	return nil
}

// asksLimit returns the question about a limit that ends the turn, unless the user has refused to raise it.
func (s *State) asksLimit(act Action, lim Limits) Action {
	if !lim.Waits || act.Kind != ActEndTurn || act.Reached == "" {
		return act
	}
	refused := func(q Question) bool {
		return q.About == op.AboutLimit && q.Limit == act.Reached && q.Answer != nil && !q.Answer.Allow
	}
	if slices.ContainsFunc(s.Questions, refused) {
		return act
	}
	act.Kind, act.Question = ActAskUser, fmt.Sprintf("A limit is reached: %s. Raise %s?",
		strings.TrimRight(act.Detail, "."), act.Reached)
	return act
}
