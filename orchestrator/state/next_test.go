package state

import (
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/optest"
)

func TestNext(t *testing.T) {
	tests := []struct {
		name, ops string
		limits    Limits
		want      ActionKind
		calls     int
		reason    string
		detail    string
	}{
		{name: "an empty stream waits", want: ActIdle},
		{name: "a task without a request waits", ops: "task.opened 0 {}", want: ActIdle},
		{name: "cards come first", ops: optest.Opened, want: ActRecall, reason: "start"},
		{name: "then the beginning is saved", ops: optest.Opened + "cards.recalled 0 {\"why\":\"start\"}", want: ActSaveWorld},
		{name: "then the model is asked", ops: optest.Begun, want: ActAsk},
		{name: "killed while asking: ask again", ops: optest.Begun + "model.asked 1 {\"last_seq\":4}\ntask.resumed 1 {}", want: ActAsk},
		{name: "a reply's calls are run", ops: optest.Called, want: ActRunCalls, calls: 2},
		{name: "a call that was begun is not run again", ops: optest.Called + "tool.called 1 {\"call\":\"a\"}", want: ActCloseUnknown, calls: 1},
		{name: "calls that were not begun are", ops: optest.Called + "tool.called 1 {\"call\":\"a\"}\ntool.returned 1 {\"call\":\"a\",\"unknown\":true}", want: ActRunCalls, calls: 1},
		{name: "one that asks the user is run again", ops: optest.Called + "tool.called 1 {\"call\":\"a\"}\nquestion.asked 1 {\"about\":\"call\",\"call\":\"a\"}", want: ActRunCalls, calls: 2},
		{name: "also when it was answered", ops: optest.Called + "tool.called 1 {\"call\":\"a\"}\nquestion.asked 1 {\"about\":\"call\",\"call\":\"a\"}\nquestion.answered 1 {\"asked\":8,\"allow\":true}", want: ActRunCalls, calls: 2},
		{name: "but not where another call asks", ops: optest.Called + "tool.called 1 {\"call\":\"a\"}\nquestion.asked 1 {\"about\":\"call\",\"call\":\"b\"}", want: ActCloseUnknown, calls: 1},
		{name: "nor where a subagent's call asks", ops: optest.Called + "tool.called 1 {\"call\":\"a\"}\nquestion.asked 1 {\"about\":\"call\",\"call\":\"a\",\"task\":\"t.1\"}", want: ActCloseUnknown, calls: 1},
		{name: "with all results the step ends", ops: optest.Results, want: ActSaveWorld},
		{name: "and the model is asked again", ops: optest.Stepped, want: ActAsk},
		{name: "a limit ends the turn", ops: optest.Stepped, limits: Limits{Limits: op.Limits{Steps: 1}}, want: ActEndTurn, reason: "limit", detail: "steps taken in this turn: 1"},
		{name: "an answer ends the turn", ops: optest.Begun + "model.asked 1 {\"last_seq\":4}\nmodel.replied 1 {\"text\":\"done\",\"finish\":\"stop\"}\nworld.saved 1 {\"parent\":0}", want: ActEndTurn, reason: "done"},
		{name: "but not when the user spoke meanwhile", ops: optest.Begun + "model.asked 1 {\"last_seq\":4}\nuser.said 1 {\"text\":\"and\",\"source\":\"steer\"}\nmodel.replied 1 {\"text\":\"done\",\"finish\":\"stop\"}\nworld.saved 1 {\"parent\":0}", want: ActAsk},
		{name: "an answer to the last words ends it", ops: optest.Begun + "user.said 1 {\"text\":\"and\",\"source\":\"steer\"}\nmodel.asked 1 {\"last_seq\":5}\nmodel.replied 1 {\"text\":\"done\",\"finish\":\"stop\"}\nworld.saved 1 {\"parent\":0}", want: ActEndTurn, reason: "done"},
		{name: "an ended turn waits", ops: optest.Begun + "turn.ended 1 {\"reason\":\"interrupted\"}", want: ActIdle},
		{name: "a resume without words goes on", ops: optest.Begun + "turn.ended 1 {\"reason\":\"interrupted\"}\ntask.resumed 1 {\"continue\":true}", want: ActAsk},
		{name: "a jump waits for its step", ops: optest.Called + "jump.requested 1 {\"to\":0,\"by\":\"agent\",\"call\":\"a\"}", want: ActRunCalls, calls: 2},
		{name: "and is made when it has ended", ops: optest.Stepped + "jump.requested 2 {\"to\":0,\"by\":\"person\"}", want: ActJump},
		{name: "a user's jump is made between turns", ops: optest.Stepped + "turn.ended 2 {\"reason\":\"done\"}\njump.requested 2 {\"to\":0,\"by\":\"person\"}", want: ActJump},
		{name: "a jump to the current step is dropped", ops: optest.Stepped + "jump.requested 2 {\"to\":1,\"by\":\"agent\"}", want: ActDropJump, detail: "is the current step"},
		{name: "a jump to nowhere is dropped", ops: optest.Stepped + "jump.requested 2 {\"to\":9,\"by\":\"agent\"}", want: ActDropJump, detail: "valid steps are 0 to 1"},
		{name: "a jump without a checkpoint is dropped", ops: optest.Results + "world.saved 1 {\"parent\":0,\"error\":\"disk full\"}\nmodel.asked 2 {}\nmodel.replied 2 {\"text\":\"x\",\"finish\":\"stop\"}\nworld.saved 2 {\"parent\":1,\"commit\":\"c\"}\njump.requested 3 {\"to\":1,\"by\":\"agent\"}", want: ActDropJump, detail: "disk full"},
		{name: "a D-Mail is delivered", ops: optest.Stepped + "jump.requested 1 {\"to\":0,\"by\":\"agent\",\"mail\":{}}", want: ActMail},
		{name: "one that restores files is a jump", ops: optest.Stepped + "jump.requested 1 {\"to\":0,\"by\":\"agent\",\"mail\":{\"restore_files\":true}}", want: ActJump},
		{name: "a D-Mail to the last step is dropped", ops: optest.Stepped + "jump.requested 1 {\"to\":1,\"by\":\"agent\",\"mail\":{}}", want: ActDropJump, detail: "nothing came after step 1"},
		{name: "a restore past its intent is told of", ops: optest.Stepped + "restore.intended 1 {\"to_step\":0}\ntask.resumed 1 {}", want: ActTellRestore},
		{name: "a restore with its result is not", ops: optest.Stepped + "restore.intended 1 {\"to_step\":0}\nworld.restored 1 {\"notice\":\"n\"}\ntask.resumed 1 {}", want: ActAsk},
		{name: "a jump past its intent is finished", ops: optest.Stepped + "jump.requested 2 {\"to\":0}\njump.intended 2 {\"to\":0}\ntask.resumed 2 {}", want: ActFinishJump},
		{name: "a jump recalls no cards", ops: optest.Stepped + optest.JumpBack("2"), want: ActAsk},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Next(optest.Fold(t, Fold, optest.Parse(t, tt.ops)), tt.limits)
			if got.Kind != tt.want || len(got.Calls) != tt.calls {
				t.Errorf("Next = %+v, want kind %d with %d calls", got, tt.want, tt.calls)
			}
			if tt.reason != "" && got.Reason != tt.reason {
				t.Errorf("reason %q, want %q", got.Reason, tt.reason)
			}
			if !strings.Contains(got.Detail, tt.detail) {
				t.Errorf("detail %q does not say %q", got.Detail, tt.detail)
			}
		})
	}
}

// TestLoopGuard: before the fourth backward jump of the agent to one step a
// strategy is asked for. With one the jump is made and the count begins anew;
// without, a user is asked, or the turn ends. A user's own jump may be made.
func TestLoopGuard(t *testing.T) {
	text := optest.Begun
	for i := range MaxBackwardJumps {
		step := string(rune('1' + i))
		next := string(rune('2' + i))
		text += "model.asked " + step + " {}\nmodel.replied " + step +
			" {\"text\":\"x\",\"finish\":\"stop\"}\nworld.saved " + step + " {\"parent\":0,\"commit\":\"c\"}\n" + optest.JumpBack(next)
	}
	text += "model.asked 4 {}\nmodel.replied 4 {\"text\":\"x\",\"finish\":\"stop\"}\nworld.saved 4 {\"parent\":0,\"commit\":\"c\"}\n"
	fourth := text + "jump.requested 5 {\"to\":0,\"by\":\"agent\"}\n"
	failed := fourth + "reflect.asked 5 {\"to\":0}\nreflect.failed 5 {\"to\":0,\"why\":\"no answer\"}\n"
	question := fourth + "strategy.given 5 {\"to\":0,\"question\":\"Which port?\",\"text\":\"[STRATEGY]\"}\n"
	plan := fourth + "strategy.given 5 {\"to\":0,\"plan\":[\"look\"],\"text\":\"[STRATEGY]\"}\n"
	again := plan +
		"jump.intended 5 {\"to\":0,\"backward\":true,\"by\":\"agent\"}\njump.done 5 {\"to\":0}\nmodel.asked 5 {}\nmodel.replied 5 {\"text\":\"x\",\"finish\":\"stop\"}\nworld.saved 5 {\"parent\":0,\"commit\":\"c\"}\njump.requested 6 {\"to\":0,\"by\":\"agent\"}\n"
	tests := []struct {
		name, ops string
		person    bool
		want      ActionKind
		detail    string
		question  string
	}{
		{name: "the fourth", ops: fourth, want: ActReflect},
		{name: "killed while reflecting", ops: fourth + "reflect.asked 5 {\"to\":0}\ntask.resumed 5 {}\n", want: ActReflect},
		{name: "a plan", ops: plan, want: ActJump},
		{name: "the count begins anew", ops: again, want: ActJump},
		{name: "a question, nobody there", ops: question, want: ActEndTurn, detail: "Which port?"},
		{name: "a question", ops: question, person: true, want: ActAskUser, question: "Which port?"},
		{name: "an answer", ops: question + "user.said 5 {\"text\":\"80\",\"source\":\"answer\"}\n", want: ActJump},
		{name: "no strategy, nobody there", ops: failed, want: ActEndTurn, detail: "(no strategy: no answer)"},
		{name: "no strategy", ops: failed, person: true, want: ActAskUser, question: "3 jumps back to step 0 did not help; what should be tried next?"},
		{name: "a user's jump", ops: text + "jump.requested 5 {\"to\":0,\"by\":\"person\"}", want: ActJump},
		{name: "a user's jumps do not count", ops: strings.ReplaceAll(text, `"by":"agent"`, `"by":"person"`) + "jump.requested 5 {\"to\":0,\"by\":\"agent\"}", want: ActJump},
		{name: "after a user's word", ops: failed + "jump.dropped 5 {\"to\":0}\nturn.ended 5 {\"reason\":\"stuck\"}\nuser.said 5 {\"text\":\"try b\",\"source\":\"request\"}\njump.requested 5 {\"to\":0,\"by\":\"agent\"}", want: ActJump},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Next(optest.Fold(t, Fold, optest.Parse(t, tt.ops)), Limits{User: tt.person})
			if got.Kind != tt.want || !strings.Contains(got.Detail, tt.detail) ||
				tt.question != "" && got.Question != tt.question {
				t.Errorf("Next = %+v, want kind %d", got, tt.want)
			}
			if got.Kind == ActEndTurn && got.Reason != "stuck" {
				t.Errorf("the turn ends as %s, want stuck", got.Reason)
			}
		})
	}
}
