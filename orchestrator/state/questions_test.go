package state

import (
	"testing"

	"anamnesis/opstream/op"
)

// TestQuestions: a question is open until an answer names it, keeps its first answer, and goes with what asked.
func TestQuestions(t *testing.T) {
	fold := func(bodies ...op.Body) (qs Questions) {
		for i, b := range bodies {
			qs.Fold(op.Op{Seq: uint64(i + 1), Body: b})
		}
		return qs
	}
	call := &op.QuestionAsked{About: op.AboutCall, Call: "c"}
	of := func(about, task string) *op.QuestionAsked {
		return &op.QuestionAsked{About: about, Task: task, Call: "c"}
	}
	yes, no := &op.QuestionAnswered{Asked: 1, Answer: op.Answer{Allow: true}}, &op.QuestionAnswered{Asked: 1}
	if qs := fold(call, of(op.AboutCall, "t.1")); qs.Open() == nil || qs.Open().Seq != 2 {
		t.Errorf("open: %+v", qs.Open())
	}
	if qs := fold(call, yes, no); qs.Open() != nil || len(qs) != 1 || qs[0].Answer != yes {
		t.Errorf("two answers: %+v", qs)
	}
	for _, tt := range []struct {
		name string
		left int
		ops  []op.Body
	}{
		{"the call returned", 0, []op.Body{call, yes, &op.ToolReturned{Call: "c"}}},
		{"another call returned", 1, []op.Body{call, &op.ToolReturned{Call: "d"}}},
		{"a call of the same id returned, not the subagent's", 1, []op.Body{of(op.AboutCall, "t.1"), &op.ToolReturned{Call: "c"}}},
		{"the subagent is done", 0, []op.Body{of(op.AboutCall, "t.1"), &op.SubagentEnded{Task: "t.1", Reason: "done"}}},
		{"the subagent was lost with its process", 1, []op.Body{of(op.AboutCall, "t.1"), &op.SubagentEnded{Task: "t.1", Reason: "lost"}}},
		{"the provider answered", 0, []op.Body{of(op.AboutProvider, ""), &op.ModelReplied{}}},
		{"the user spoke", 0, []op.Body{of(op.AboutStrategy, ""), &op.UserSaid{}}},
		{"the user spoke of something else", 1, []op.Body{call, &op.UserSaid{}}},
		{"the limit was raised", 0, []op.Body{of(op.AboutLimit, ""), &op.TaskResumed{Limits: new(op.Limits)}}},
		{"the task was resumed", 1, []op.Body{of(op.AboutLimit, ""), &op.TaskResumed{}}},
		{"the turn ended", 0, []op.Body{call, of(op.AboutCall, "t.1"), &op.TurnEnded{}}},
	} {
		if qs := fold(tt.ops...); len(qs) != tt.left {
			t.Errorf("%s: %d questions are left, want %d", tt.name, len(qs), tt.left)
		}
	}
}

// TestAsksLimit: a limit is a question where an answer is waited for, until the user refuses to raise it.
func TestAsksLimit(t *testing.T) {
	end := Action{Kind: ActEndTurn, Reason: "limit", Reached: op.LimitTokens, Detail: "100 tokens used"}
	refused := Question{
		QuestionAsked: op.QuestionAsked{About: op.AboutLimit, Limit: op.LimitTokens},
		Answer:        new(op.QuestionAnswered),
	}
	unanswered, otherLimit, other := refused, refused, refused
	unanswered.Answer, otherLimit.Limit, other.About = nil, op.LimitSteps, op.AboutCall
	raised := refused
	raised.Answer = &op.QuestionAnswered{Answer: op.Answer{Allow: true}}
	for _, tt := range []struct {
		name string
		qs   Questions
		lim  Limits
		act  Action
		want ActionKind
	}{
		{"nobody answers", nil, Limits{User: true}, end, ActEndTurn},
		{"somebody may", nil, Limits{Waits: true}, end, ActAskUser},
		{"refused", Questions{refused}, Limits{Waits: true}, end, ActEndTurn},
		{"raised before a crash", Questions{raised}, Limits{Waits: true}, end, ActAskUser},
		{"not answered before a crash", Questions{unanswered}, Limits{Waits: true}, end, ActAskUser},
		{"another was refused", Questions{otherLimit}, Limits{Waits: true}, end, ActAskUser},
		{"a call was refused", Questions{other}, Limits{Waits: true}, end, ActAskUser},
		{"another end", nil, Limits{Waits: true}, Action{Kind: ActEndTurn, Reason: "done"}, ActEndTurn},
	} {
		if got := (&State{Questions: tt.qs}).asksLimit(tt.act, tt.lim); got.Kind != tt.want {
			t.Errorf("%s: action %d, want %d", tt.name, got.Kind, tt.want)
		}
	}
}
