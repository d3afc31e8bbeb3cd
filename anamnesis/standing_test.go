package anamnesis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/note"
	"anamnesis/opstream/op"
)

// TestStandingBlock: a block for steps whose changes remain says where the model can go back
// to, what no jump undoes, why paths were left and what commands advised; the next such
// block says it again, but for places that the task has left since.
func TestStandingBlock(t *testing.T) {
	s := newSpan(12, 3)
	s.say("I try redis first.\nIt is fast.")
	s.bash("make cache", 1, "hint: use one of lru or redis\n", "cache.c:3: redis is refused\n")
	s.save("22")
	s.call("jump_to_step", `{"step_id":2,"reason":"refused"}`, op.ToolReturned{Text: "scheduled"})
	s.add(&op.JumpIntended{From: 4, To: 2, Backward: true, Reason: "redis is refused without a server"})
	s.add(&op.JumpDone{From: 4, To: 2})
	s.save("33")
	s.say("I try lru now.")
	s.bash("git push origin main", 0, "pushed\n", "")
	s.save("44")
	r := s.request(16000)
	r.Reason = ""
	r.Standing, r.Live, r.Effects = true, map[int]int{1: 0, 2: 1, 5: 2}, []string{"op 30: git push origin main"}
	first := pass(t, nil, r, nil).Block
	for _, want := range []string{
		"  why: exit code 1; left because: redis is refused without a server (op 14)\n",
		"Steps to go back to, and what you said next:\n- step 2: I try lru now. (op 21)\nNot undone by a jump, where these commands reached beyond the directory:\n- op 30: git push origin main\n",
		"- Bash: make cache printed: hint: use one of lru or redis (op 14)\n",
	} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q in\n%s", want, first)
		}
	}
	again := newSpan(60, 6)
	again.add(&op.PassDone{Block: first})
	again.say("On with it.")
	again.bash("make all", 0, "", "")
	again.save("55")
	r = again.request(16000)
	r.Standing, r.Live, r.Effects = true, map[int]int{2: 0, 5: 2, 6: 5},
		[]string{"op 62: git push origin main", "op 63: npm publish"}
	second := pass(t, nil, r, nil).Block
	for _, want := range []string{
		"left because: redis is refused without a server",
		"- step 5: On with it. (op 61)\n- step 2: I try lru now.\n",
		"- op 30: git push origin main\n- op 63: npm publish\n",
	} {
		if !strings.Contains(second, want) {
			t.Errorf("no %q in\n%s", want, second)
		}
	}
	r.Live = map[int]int{6: 5}
	if left := pass(t, nil, r, nil).Block; strings.Contains(left, "I try lru now") {
		t.Errorf("a place that the task has left is offered:\n%s", left)
	}
}

// TestLeftBlock: where a pass was made for a jump, the block is given the reason.
func TestLeftBlock(t *testing.T) {
	block := pass(t, nil, story().request(16000), nil).Block
	s := newSpan(60, 6)
	s.add(&op.PassDone{Block: block})
	s.add(&op.JumpIntended{From: 6, To: 2, Backward: true, Reason: "the file is generated"})
	s.add(&op.JumpDone{From: 6, To: 2})
	s.save("55")
	r := s.request(16000)
	r.Standing = true
	got := pass(t, nil, r, nil).Block
	if want := "why: exit code 1, 2 times; left because: the file is generated"; strings.Count(got, want) != 1 {
		t.Errorf("no %q in\n%s", want, got)
	}
}

// TestPlaces: a block that has no room for all steps to go back to names those at which the
// task decided anew, then the latest, and the reason for a jump stays at the failure that it
// was made for, whatever left the context in between.
func TestPlaces(t *testing.T) {
	s := newSpan(12, 3)
	live := make(map[int]int)
	for step := 3; step < 12; step++ {
		live[step] = step - 1
		s.say(fmt.Sprintf("Choice %d.", step))
		s.bash(fmt.Sprintf("make part%d", step), 0, "made\n", "")
		s.save(fmt.Sprint(step))
	}
	s.bash("make cache", 1, "", "cache.c:3: redis is refused\n")
	s.add(&op.PassDone{Trigger: op.TriggerWindow, Block: pass(t, nil, story().request(16000), nil).Block})
	s.add(&op.JumpIntended{From: 12, To: 4, Backward: true, Reason: "redis is refused without a server"})
	s.add(&op.JumpDone{From: 12, To: 4})
	s.save("again")
	r := s.request(6400)
	r.Standing, r.Live = true, live
	got := pass(t, nil, r, nil).Block
	if want := "said next:\n- step 4: Choice 5. (op 20)\n- step 10: Choice 11."; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	if want := "left because: redis is refused without a server"; !strings.Contains(got, "error: cache.c:3: redis is refused\n  why: exit code 1; "+want) {
		t.Errorf("no %q at its failure in\n%s", want, got)
	}
}

// TestCompactionWritesNoCard: a red test on work that goes on is no lesson: neither the extractor nor a model
// makes a card of it, no word says that the work was given up, and a later jump that leaves the block's step makes
// none of it either.
func TestCompactionWritesNoCard(t *testing.T) {
	s := newSpan(12, 3)
	s.say("I write the test first.")
	s.bash("go test ./...", 1, "--- FAIL: TestSum (0.00s)\nFAIL\n", "")
	s.save("22")
	standing, short := s.request(16000), s.request(16000)
	standing.Standing, standing.Reason, short.NoCards = true, "", true
	for name, r := range map[string]Request{"of standing steps": standing, "of a path left": short} {
		says := &scripted{t: t, answers: []func(context.Context, string, string) (consult.Completion, error){
			says(`{"cards":[{"topic":"sum","issue":["go test fails"],"solution":["fix it"],"ops":[14]}]}`),
		}}
		for _, m := range []consult.Model{nil, says} {
			res := pass(t, m, r, nil)
			if len(res.Cards) > 0 || res.NoCards != "compaction writes no card" ||
				strings.Contains(res.Block, "iven up") {
				t.Errorf("%s: %d cards (%s)\n%s", name, len(res.Cards), res.NoCards, res.Block)
			}
		}
	}
	later := newSpan(60, 6)
	later.add(&op.PassDone{Trigger: op.TriggerWindow, Block: pass(t, nil, standing, nil).Block})
	later.say("Now something else.")
	later.save("33")
	r := later.request(16000)
	r.Reason = ""
	if res := pass(t, nil, r, nil); len(res.Cards) > 0 {
		t.Errorf("a jump makes a card of what was compacted: %s", res.Cards[0].Markdown())
	}
}

// TestReasonOfCompaction: where a jump leaves nothing but blocks that made room, the first path of the latest is given
// the reason; what the list of places quotes is no finding as well.
func TestReasonOfCompaction(t *testing.T) {
	of := func(command string) string {
		s := newSpan(12, 3)
		s.bash(command, 2, "", "error: no rule for "+command+"\n")
		s.bash("./second "+command, 2, "", "error: no second\n")
		r := s.request(16000)
		r.Standing = true
		return pass(t, nil, r, nil).Block
	}
	s := newSpan(60, 6)
	for _, command := range []string{"./old", "./new"} {
		s.add(&op.PassDone{Trigger: op.TriggerWindow, Block: of(command)})
	}
	s.say("This leads nowhere.")
	s.bash("make", 0, "", "")
	s.add(&op.JumpIntended{From: 6, To: 2, Backward: true, Reason: "redis is refused"})
	s.save("55")
	r := s.request(16000)
	r.Standing, r.Live = true, map[int]int{6: 5}
	res := pass(t, nil, r, nil)
	var got []string
	for _, f := range res.Notes.Falsified {
		if strings.Contains(f.Why, "left because: redis is refused") {
			got = append(got, f.Action)
		}
	}
	if first := note.ParseFalsified(of("./new"))[0].Action; len(res.Notes.Falsified) != 4 || len(got) != 1 ||
		got[0] != first {
		t.Errorf("the reason stands at %q, want %q", got, first)
	}
	if len(res.Notes.Places) != 1 || !strings.Contains(res.Notes.Places[0].Text, "This leads nowhere.") {
		t.Errorf("places: %+v", res.Notes.Places)
	}
	for _, f := range res.Notes.Findings {
		if strings.Contains(f.Text, "This leads nowhere.") {
			t.Errorf("said twice: %+v", f)
		}
	}
	r.Standing = false
	if res := pass(t, nil, r, nil); !slices.ContainsFunc(res.Notes.Findings,
		func(s note.Statement) bool { return strings.Contains(s.Text, "This leads nowhere.") }) {
		t.Errorf("findings: %+v", res.Notes.Findings)
	}
}

// TestReasonOnce: a path whose block says why it was left is not given another reason.
func TestReasonOnce(t *testing.T) {
	left := func(block, reason string) string {
		s := newSpan(60, 6)
		s.add(&op.PassDone{Block: block})
		s.add(&op.JumpIntended{From: 6, To: 2, Backward: true, Reason: reason})
		r := s.request(16000)
		r.Standing = true
		return pass(t, nil, r, nil).Block
	}
	block := left(left(pass(t, nil, story().request(16000), nil).Block, "the first reason"), "the second reason")
	if strings.Count(block, "left because: the first reason") != 1 ||
		strings.Contains(block, "left because: the second reason") {
		t.Error(block)
	}
	// A path that starts at step 0 begins with the files of the task's beginning.
	s := newSpan(12, 3)
	s.write("a", "x")
	s.bash("make", 2, "", "error: no rule\n")
	r := s.request(4000)
	cut := r.Ops[2].Seq
	r.Ranges, r.Starts = []op.Range{{First: 12, Last: cut - 1}, {First: cut, Last: r.Ranges[0].Last}}, []int{2, 0}
	if recs := records(&r); recs[1].state != "after step 0" {
		t.Errorf("state %q", recs[1].state)
	}
}
