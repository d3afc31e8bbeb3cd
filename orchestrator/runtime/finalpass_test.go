package runtime

import (
	"fmt"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/optest"
	"anamnesis/orchestrator/state"
)

// TestFinalPassCalls: over much raw text, and with a model whose every reply
// asks for a repair, the pass at the end makes as many calls as it may and no
// more.
func TestFinalPassCalls(t *testing.T) {
	var words strings.Builder
	words.WriteString("turns:\n")
	for i := range 6 {
		fmt.Fprintf(&words,
			"  - calls: [{name: Bash, arguments: {command: \"seq %d0001 %d0200; exit 1\"}}]\n", i+1, i+1)
		fmt.Fprintf(&words,
			"  - calls: [{name: jump_to_step, arguments: {step_id: %d, reason: path %d is wrong}}]\n", i/2*5, i+1)
		if i%2 == 1 { // what is kept makes a step to go back to
			words.WriteString("  - calls: [{name: Bash, arguments: {command: pwd}}]\n")
		}
	}
	words.WriteString("  - reply: Done.\npasses:\n  - reply: I would rather not.\n")
	task, _ := newTask(t, words.String(), Options{})
	var passes []*op.PassDone
	task.opts.Callbacks.Op = func(o op.Op) {
		switch b := o.Body.(type) {
		case *op.PassBegun:
			task.Ledger.State().Model.EAS = 2600 // so that there are more pieces than calls
		case *op.PassDone:
			passes = append(passes, b)
		}
	}
	if out, err := task.Run(t.Context()); err != nil || out.Answer != "Done." {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	if len(passes) != 1 || passes[0].Trigger != op.TriggerEnd || passes[0].Calls != 4 ||
		!strings.Contains(passes[0].Fallback, "no call was left") {
		for _, p := range passes {
			t.Logf("%s: %d calls; %s", p.Trigger, p.Calls, p.Fallback)
		}
		t.Errorf("%d passes, want one at the end with 4 calls, and that it wanted more", len(passes))
	}
}

// TestFinalPassOnce: one answer has one pass at its end, even one that leaves
// steps unread; the next answer may have another.
func TestFinalPassOnce(t *testing.T) {
	answer := func(step string) string {
		return "model.asked " + step + " {\"last_seq\":99}\nmodel.replied " + step +
			" {\"text\":\"x\",\"finish\":\"stop\"}\nworld.saved " + step + " {\"parent\":0,\"commit\":\"c\"}\n"
	}
	left := optest.Stepped + optest.JumpBack("2") + "cards.recalled 2 {\"why\":\"jump\"}\n" + answer("2")
	pass := "pass.begun 3 {\"trigger\":\"end\"}\n"
	read := left + pass + "pass.done 3 {\"trigger\":\"end\",\"writer\":\"model\"}\n" // over no range: it reads nothing
	again := read + "turn.ended 3 {\"reason\":\"done\"}\nuser.said 3 {\"text\":\"and\",\"source\":\"request\"}\n"
	for _, tt := range []struct {
		name, ops string
		want      state.ActionKind
	}{
		{"a path was left", left, state.ActLearn},
		{"killed in the pass", left + pass + "task.resumed 3 {}\n", state.ActLearn},
		{"it was made", read, state.ActEndTurn},
		{"it was made, and the program killed", read + "task.resumed 3 {}\n", state.ActEndTurn},
		{"a further turn asks first", again, state.ActAsk},
		{"and has its own", again + answer("3"), state.ActLearn},
	} {
		if got := state.Next(optest.Fold(t, state.Fold, optest.Parse(t, tt.ops)), state.Limits{}); got.Kind != tt.want {
			t.Errorf("%s: Next = %+v, want kind %d", tt.name, got, tt.want)
		}
	}
}
