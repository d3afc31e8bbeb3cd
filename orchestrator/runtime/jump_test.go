package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/optest"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// passing is a stream up to a jump whose pass is recorded and whose intent is
// not: the user said a word in the steps to be left.
const passing = optest.Begun + `model.asked 1 {"last_seq":4}
model.replied 1 {"text":"I try.","calls":[{"id":"a","name":"Bash","args":"{}"}],"finish":"tool_calls"}
tool.called 1 {"call":"a","name":"Bash"}
user.said 1 {"text":"Mind the tabs.","source":"steer"}
tool.returned 1 {"call":"a","name":"Bash","text":"a long output"}
world.saved 1 {"parent":0,"commit":"c1","mark":"[step 1]"}
jump.requested 2 {"to":0,"by":"agent"}
pass.done 2 {"ranges":[{"first":5,"last":10}],"trigger":"jump","block":"[ANAMNESIS_BLOCK]"}
`

// TestPassWithoutItsJump: a pass takes effect with its jump. When the jump is
// given up, nothing is compacted and nothing a user said is gone.
func TestPassWithoutItsJump(t *testing.T) {
	before := optest.Fold(t, state.Fold, optest.Parse(t, passing))
	for name, then := range map[string]string{
		"pending": "",
		"dropped": "jump.dropped 2 {\"to\":0}\n",
	} {
		s := optest.Fold(t, state.Fold, optest.Parse(t, passing+then))
		text := string(optest.Render(s.Context.Chat()))
		if !strings.Contains(text, "Mind the tabs.") || !strings.Contains(text, "a long output") ||
			strings.Contains(text, "[ANAMNESIS_BLOCK]") {
			t.Errorf("%s: the pass took effect without its jump:\n%s", name, text)
		}
		if s.Steps.At(1).Compacted || s.Totals.Blocks != 0 {
			t.Errorf("%s: step 1 is compacted", name)
		}
	}
	if len(before.Jump.Pending.Passes) != 1 {
		t.Errorf("the pending jump has %d passes, want the one that was made", len(before.Jump.Pending.Passes))
	}
	done := optest.Fold(t, state.Fold, optest.Parse(t, passing+`jump.intended 2 {"from":1,"to":0,"backward":true,"discarded":[{"first":5,"last":10}]}
jump.done 2 {"from":1,"to":0,"words":"What the user said: Mind the tabs."}
`))

	text := string(optest.Render(done.Context.Chat()))
	if strings.Contains(text, "a long output") || !strings.Contains(text, "[ANAMNESIS_BLOCK]") ||
		!strings.Contains(text, "Mind the tabs.") {
		t.Errorf("the jump was made and its pass has no effect:\n%s", text)
	}
}

// TestSealInsideAJump: the log's own lines belong to an ended step's number
// and not to its range; the step is compacted all the same.
func TestSealInsideAJump(t *testing.T) {
	s := optest.Fold(t, state.Fold,
		optest.Parse(t, strings.Replace(passing, "pass.done", "log.sealed 1 {}\npass.done", 1)+
			"log.sealed 1 {}\njump.intended 2 {\"from\":1,\"to\":0}\n"))

	if !s.Steps.At(1).Compacted || s.Steps.At(1).Last != 10 {
		t.Errorf("step 1: %+v, want compacted and ending with op 10", s.Steps.At(1))
	}
}

// TestBlockAtItsPlace: an older block inside a later span's range does not
// draw the new block to itself.
func TestBlockAtItsPlace(t *testing.T) {
	s := optest.Fold(t, state.Fold, optest.Parse(t, passing+`jump.intended 2 {"from":1,"to":0}
jump.done 2 {"from":1,"to":0,"notice":"first notice"}
model.asked 2 {"last_seq":14}
model.replied 2 {"text":"live","finish":"stop"}
world.saved 2 {"parent":0,"commit":"c2"}
model.asked 3 {"last_seq":17}
model.replied 3 {"text":"left","finish":"stop"}
world.saved 3 {"parent":2,"commit":"c3"}
jump.requested 4 {"to":2,"by":"agent"}
pass.done 4 {"ranges":[{"first":18,"last":20}],"trigger":"jump","block":"[SECOND BLOCK]"}
jump.intended 4 {"from":3,"to":2}
jump.done 4 {"from":3,"to":2}
`))

	text := string(optest.Render(s.Context.Chat()))
	first, live, second := strings.Index(text, "[ANAMNESIS_BLOCK]"), strings.Index(text, "live"), strings.Index(text,
		"[SECOND BLOCK]")
	if first < 0 || first > live || live > second || strings.Contains(text, "left") {
		t.Errorf("the blocks are not at their spans' places:\n%s", text)
	}
}

// bigCommand makes a call whose output is longer than the test's EAS.
const bigCommand = `{name: Bash, arguments: {command: "seq 1 3000; exit 1"}}`

// TestTwoLinesOneJump jumps back over two lines of states at once: each gets a
// block at its place, that of the earlier jump with its own reason (the notice says
// this one's), also when the process dies between the passes.
func TestTwoLinesOneJump(t *testing.T) {
	words := `turns:
  - calls: [{name: WriteFile, arguments: {path: a, content: one}}]
  - calls: [` + bigCommand + `]
  - calls: [{name: jump_to_step, arguments: {step_id: 1, reason: first reason}}]
  - reply: Another way.
    calls: [` + bigCommand + `]
  - calls: [{name: jump_to_step, arguments: {step_id: 0, reason: second reason}}]
  - expect:
      - {on: all-joined, contains: ["first reason", "second reason"], lacks: "2999"}
    reply: Done.
`
	for _, killed := range []bool{false, true} {
		var opts Options
		passes, blocks := 0, ""
		task, h := newTask(t, words, opts)
		// The first jump stays raw, so that the second compacts both lines.
		task.Ledger.State().Model.EAS = 1 << 20
		task.opts.Callbacks.Op = func(o op.Op) {
			if b, ok := o.Body.(*op.PassDone); ok {
				blocks += b.Block
				if passes++; passes == 1 && killed {
					panic(errKilled)
				}
			}
		}
		task.opts.Callbacks.Delta = func(model.Delta) {
			if task.Ledger.State().Totals.Jumps == 1 {
				task.Ledger.State().Model.EAS = 2000
			}
		}
		out := runOrDie(t, task)
		if killed {
			if err := task.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := OpenTask(t.Context(), h, "t", *task.opts)
			if err != nil {
				t.Fatal(err)
			}
			again.Ledger.State().Model.EAS = 2000
			out = runOrDie(t, again)
			task.Ledger.State().Totals = again.Ledger.State().Totals
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.Contains(blocks, "first reason") || strings.Contains(blocks, "second reason") {
			t.Errorf("killed %v: the blocks say\n%s", killed, blocks)
		}
		if out.Answer != "Done." || task.Ledger.State().Totals.Blocks != 2 || passes != 2 {
			t.Errorf("killed %v: %+v, %d blocks, %d passes; want two of each", killed, out,
				task.Ledger.State().Totals.Blocks, passes)
		}
	}
}

// TestRefusalIsOneWrite: whatever a crash leaves of a refusal, the call is not
// run by the process that comes after it.
func TestRefusalIsOneWrite(t *testing.T) {
	task, h := newTask(t, `turns:
  - calls: [{name: Bash, arguments: {command: "touch ran"}}]
  - expect:
      - {on: all-joined, contains: ["Refused by the user.", "never do that"]}
    reply: Done.
`, Options{Guards: Guards{Approval: "ask"}, Callbacks: Callbacks{Approve: func(context.Context, gate.Question) gate.Answer { return gate.Answer{Text: "never do that"} }}})
	task.opts.Callbacks.Op = func(o op.Op) {
		if _, ok := o.Body.(*op.ApprovalDecided); ok {
			panic(errKilled)
		}
	}
	runOrDie(t, task)
	if err := task.Close(); err != nil {
		t.Fatal(err)
	}
	opts := *task.opts
	opts.Callbacks.Op, opts.Guards.Approval = nil, "auto"
	again, err := OpenTask(t.Context(), h, "t", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if out := runOrDie(t, again); out.Answer != "Done." {
		t.Errorf("Run = %+v", out)
	}
	if _, err := os.Stat(filepath.Join(task.Place.Dir, "ran")); err == nil {
		t.Error("the refused call was run")
	}
}

// TestJumpAfterTheTurn: a jump that was accepted when the turn had ended is
// still to be made, and says so.
func TestJumpAfterTheTurn(t *testing.T) {
	task, _ := newTask(t,
		"turns:\n  - calls: [{name: WriteFile, arguments: {path: a, content: one}}]\n  - reply: Done.\n", Options{})
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "done" {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	if task.Ledger.Unanswered() {
		t.Error("something is left to do after the turn")
	}
	if err := task.Ledger.Jump(t.Context(), op.JumpRequested{}); err != nil {
		t.Fatal(err)
	}
	if !task.Ledger.Unanswered() {
		t.Error("the jump is forgotten")
	}
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "idle" || task.Ledger.State().Current != 0 {
		t.Errorf("Run = %+v, %v, at step %d", out, err, task.Ledger.State().Current)
	}
	if err := task.Close(); err != nil {
		t.Fatal(err)
	}
	if err := task.Ledger.Say(t.Context(), "too late", op.SourceSteer); !errors.Is(err, taskdir.ErrNotLive) {
		t.Errorf("Say after Close: %v", err)
	}
}

var errKilled = errors.New("killed")

// runOrDie runs a task; an Event that panics with errKilled ends it as a
// sudden death would: durable operations stay, nothing after them happens.
func runOrDie(t *testing.T, task *Task) (out Outcome) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil && r != any(errKilled) {
			panic(r)
		}
	}()
	out, err := task.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNameIsFreeAgain: a task that could not be made leaves its name free, and
// one that exists is not opened a second time.
func TestNameIsFreeAgain(t *testing.T) {
	task, h := newTask(t, "turns:\n  - reply: Done.\n", Options{})
	n := New{Request: "Go.", TaskOpened: op.TaskOpened{Task: "u", Dir: "/", Encoding: "cl100k_base", EAS: 8000}}
	if _, err := Create(t.Context(), h, n, Options{}); err == nil {
		t.Fatal("a task in / was made")
	}
	if _, err := taskdir.ReadState(h, "u"); !errors.Is(err, taskdir.ErrNoTask) {
		t.Errorf("after a refusal: %v, want no such task", err)
	}
	n.Dir = t.TempDir()
	other, err := Create(t.Context(), h, n, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(t.Context(), h, n, Options{}); !errors.Is(err, ErrTaskExists) {
		t.Errorf("made twice: %v", err)
	}
	st, err := taskdir.ReadState(h, "u")
	if err != nil || st.Opened.Task != "u" {
		t.Errorf("the first one is damaged: %v", err)
	}
	_ = task
}

// TestLateWords: words that arrive after the request was put together and
// before its record follow the reply, which did not see them.
func TestLateWords(t *testing.T) {
	s := optest.Fold(t, state.Fold, optest.Parse(t, optest.Begun+`user.said 1 {"text":"late","source":"steer"}
model.asked 1 {"last_seq":4}
model.replied 1 {"text":"reply","finish":"stop"}
world.saved 1 {"parent":0,"mark":"[step 1]"}
`))

	text := string(optest.Render(s.Context.Chat()))
	if strings.Index(text, "late") < strings.Index(text, "reply") {
		t.Errorf("the late words stand before the reply:\n%s", text)
	}
	if act := state.Next(s, state.Limits{}); act.Kind != state.ActAsk {
		t.Errorf("Next = %+v, want to ask again", act)
	}
}

// TestTriedFrom jumps to one step three times: each notice says why the earlier
// attempts from there were left, a reason given twice once, and not this one's.
func TestTriedFrom(t *testing.T) {
	task, _ := newTask(t, `turns:
  - calls: [{name: WriteFile, arguments: {path: a, content: one}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 0, reason: one is wrong}}]
  - expect: [{on: last, contains: "Reason: one is wrong"}, {on: last, lacks: "Tried from step 0"}]
    calls: [{name: WriteFile, arguments: {path: a, content: two}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 0, reason: two is wrong}}]
  - expect: [{on: last, contains: "Tried from step 0 before, with the files as they are now, and left:\n- step 1 and on: one is wrong – tried: WriteFile(a)\nThe steps"}]
    calls: [{name: WriteFile, arguments: {path: a, content: again}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 0, reason: one is wrong}}]
  - expect: [{on: last, contains: "- step 1 and on: one is wrong – tried: WriteFile(a)\n- step 3 and on: two is wrong – tried: WriteFile(a)\nThe steps"}]
    reply: Done.
`, Options{})
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "done" {
		t.Fatalf("Run = %+v, %v", out, err)
	}
}

// TestCumulativeRule: two discarded spans, neither longer than the EAS, are
// compacted together once both are, each at its place.
func TestCumulativeRule(t *testing.T) {
	task, _ := newTask(t, `turns:
  - calls: [{name: Bash, arguments: {command: "seq 10001 10800"}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 0, reason: the first}}]
  - expect:
      - {on: all-joined, contains: ["\n10700", "[END OF DISCARDED STEPS]"], lacks: "[ANAMNESIS_BLOCK]"}
    calls: [{name: Bash, arguments: {command: "seq 20001 20800"}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 0, reason: the second}}]
  - expect:
      - {on: all-joined, contains: ["the first", "the second"], lacks: ["\n10700", "\n20700"]}
    reply: Done.
`, Options{})
	task.Ledger.State().Model.EAS = 4000
	var triggers []string
	task.opts.Callbacks.Op = func(o op.Op) {
		if b, ok := o.Body.(*op.PassDone); ok {
			triggers = append(triggers, b.Trigger)
			if b.RangeTokens > 4000 {
				t.Errorf("the span over %v has %d tokens, more than the EAS: it says nothing about the sum", b.Ranges,
					b.RangeTokens)
			}
		}
	}
	out, err := task.Run(t.Context())
	if err != nil || out.Answer != "Done." {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	if strings.Join(triggers, " ") != "cumulative cumulative" {
		t.Errorf("passes for %q, want two for the sum", triggers)
	}
}

// TestWhatASpanWeighs: a span's size is that of all its operations as they
// were appended: what the user said in it counts, though it is carried over,
// and a result counts in full, though it was masked since.
func TestWhatASpanWeighs(t *testing.T) {
	const masked = `context.masked 1 {"results":[{"seq":9,"line":"op 9","tok":1}]}
`
	plain, less := optest.Parse(t, passing), optest.Parse(t,
		strings.Replace(passing, "world.saved", masked+"world.saved", 1))
	weight, words := 0, 0
	for _, o := range plain[4:10] {
		weight += o.Tok
		if _, ok := o.Body.(*op.UserSaid); ok {
			words = o.Tok
		}
	}
	for name, s := range map[string]*state.State{"whole": optest.Fold(t, state.Fold, plain), "masked": optest.Fold(t, state.Fold, less)} {
		if got := s.RangeTokens(s.Steps.Ranges(s.Discarded(0))); got != weight || words == 0 {
			t.Errorf("%s: %d tokens, want %d with the %d the user said", name, got, weight, words)
		}
	}
}
