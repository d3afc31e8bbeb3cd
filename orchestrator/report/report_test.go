package report

import (
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
)

// TestReport: what a record says of a task, line by line.
func TestReport(t *testing.T) {
	exit := func(n int) *int { return &n }
	at := time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)
	var r Report
	seq, step := uint64(0), 0
	add := func(bodies ...op.Body) {
		for _, b := range bodies {
			seq++
			at = at.Add(time.Minute)
			r.Add(op.Op{Seq: seq, Step: step, Time: at, Body: b})
			if _, ok := b.(*op.WorldSaved); ok {
				step++
			}
		}
	}
	bash := func(command, out string, code int) {
		add(&op.ToolCalled{Call: "c", Name: "Bash", Args: `{"command":"` + command + `"}`},
			&op.ToolReturned{Call: "c", Name: "Bash", Stdout: out, Text: out, Exit: exit(code), Isolated: true,
				Millis: 2000},
			&op.WorldSaved{Commit: "c0ffee"})
	}
	add(&op.TaskOpened{Task: "t", Dir: "/w", Model: "m"}, &op.UserSaid{Text: "Make the\ntests pass."},
		&op.WorldSaved{Commit: "c0"})
	bash("pytest", "=== 1 failed, 2 passed in 0.1s ===", 1) // ops 4 to 6, step 1
	bash("make", "make: *** No rule to make target 'all'.  Stop.", 2)
	add(&op.JumpRequested{To: 1, Reason: "make is not used here", By: op.ByAgent}, &op.JumpIntended{},
		&op.JumpDone{
			From: 2, To: 1, Backward: true, Discarded: []op.Range{{First: 7, Last: 9}},
			Reverted: []string{"Makefile"},
		})
	add(&op.ModelFailed{Error: "busy", Wait: &op.Wait{Until: at.Add(6 * time.Minute)}}, &op.ModelFailed{Error: "busy"})
	bash("pytest", "=== 3 passed in 0.1s ===", 0)
	add(&op.ModelReplied{Text: "Done.", Finish: "stop", Usage: op.Usage{Prompt: 7}, Millis: 500, Origin: "http://x m", Repairs: []string{"no_finish"}},
		&op.TurnEnded{Reason: "done"})

	if len(r.Asked) != 1 || r.Asked[0].Text != "Make the tests pass." || r.Asked[0].Op != 2 {
		t.Errorf("asked %+v", r.Asked)
	}
	if r.Ended == nil || r.Ended.Text != "done" || r.Ended.Op != seq || r.Answer == nil || r.Answer.Text != "Done." {
		t.Errorf("ended %+v, answer %+v", r.Ended, r.Answer)
	}
	first, best, last := r.BestTests()
	if len(r.Tests) != 2 || first.Failed != 1 || first.Step != 1 || best.Passed != 3 || last != best {
		t.Errorf("tests %+v", r.Tests)
	}
	if len(r.Left) != 1 || r.Left[0].Reason != "make is not used here" || r.Left[0].Failed == nil ||
		r.Left[0].Failed.Op != 8 || r.Left[0].Tried[0] != "Makefile" {
		t.Errorf("left %+v", r.Left)
	}
	if len(r.Faults) != 1 || r.Faults[0].N != 2 || len(r.Repairs) != 1 || r.Repairs[0].What != "no_finish (http://x m)" {
		t.Errorf("faults %+v, repairs %+v", r.Faults, r.Repairs)
	}
	if r.ToolTime != 6*time.Second || r.ModelTime != 500*time.Millisecond || r.WaitingTime != time.Minute ||
		r.Usage.Prompt != 7 {
		t.Errorf("tools %v, model %v, waiting %v, usage %+v", r.ToolTime, r.ModelTime, r.WaitingTime, r.Usage)
	}
	if r.Commit(0) != "c0" || r.Commit(9) != "" {
		t.Errorf("snapshots %q, %q", r.Commit(0), r.Commit(9))
	}

	// A jump that was not made leaves no path, nor does one forward.
	add(&op.JumpRequested{To: 0, Reason: "x"}, &op.JumpDone{From: 3, To: 0, Backward: true, Abandoned: true},
		&op.JumpDone{From: 1, To: 3})
	if len(r.Left) != 1 {
		t.Errorf("left %+v", r.Left)
	}
	add(&op.UserSaid{Text: "Now the docs."})
	if r.Ended != nil {
		t.Error("a new request leaves the task open")
	}
}

// TestFinish: tests on a left path do not count as the present ones, files that changed since are said, and each
// line has its operation.
func TestFinish(t *testing.T) {
	exit := 0
	at := time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)
	var r Report
	add := func(seq uint64, step int, b op.Body) {
		at = at.Add(time.Minute)
		r.Add(op.Op{Seq: seq, Step: step, Time: at, Body: b})
	}
	run := func(seq uint64, step int, out string, changed ...string) {
		call := op.Call{ID: "c", Name: "Bash", Args: `{"command":"pytest"}`}
		add(seq, step, &op.ModelReplied{Calls: []op.Call{call}})
		add(seq+1, step, &op.ToolCalled{Call: "c", Name: "Bash", Args: call.Args})
		add(seq+2, step, &op.ToolReturned{Call: "c", Name: "Bash", Stdout: out, Exit: &exit, Isolated: true})
		add(seq+3, step, &op.WorldSaved{Commit: "c", Changed: changed})
	}
	add(1, 0, nil) // of a kind that this program does not know
	add(1, 0, &op.TaskOpened{Task: "t", Dir: "/w"})
	add(2, 1, &op.TodosSet{Todos: []op.Todo{{Title: "x"}}})
	run(3, 1, "=== 3 passed in 0.1s ===")
	add(7, 2, &op.TodosSet{})
	run(8, 2, "=== 9 passed in 0.1s ===", "a")
	add(12, 2, &op.JumpDone{From: 2, To: 1, Backward: true, Discarded: []op.Range{{First: 7, Last: 11}}})
	add(13, 3, &op.WorldSaved{Commit: "c", Changed: []string{"a"}})
	add(14, 4, &op.ModelReplied{Calls: []op.Call{{ID: "d", Name: "Bash", Args: `{"command":"rm x"}`}}})
	add(15, 4, &op.ToolReturned{Call: "d", Name: "Bash", Text: "No user is present.\nSo.", Refused: true})
	add(16, 4, &op.SubagentStarted{Call: "e", Task: "t.1", Agent: "explore", Description: "look"})
	add(17, 4, &op.SubagentEnded{Call: "e", Task: "t.1", Reason: "done", Steps: 1})
	add(18, 4, &op.QuestionAsked{About: op.AboutCall})
	add(19, 4, &op.QuestionAnswered{Asked: 18, Answer: op.Answer{Text: "use make"}, By: "me", From: "page"})
	add(20, 4, &op.TurnEnded{Reason: "interrupted"})
	add(21, 4, &op.TaskResumed{PID: 1, Continue: true})
	add(22, 4, &op.ToolCalled{Call: "f", Name: "Bash", Args: `{"command":"make"}`})
	if q := r.Questions[0]; q.Answer != "no, use make" || q.By != "me, page" {
		t.Errorf("answered %+v", q)
	}
	r.Files, r.Open = []File{{Path: "a"}}, []Line{{Text: "x"}}
	r.Finish(func(step int) bool { return step != 2 }, true)

	first, best, last := r.BestTests()
	if first != last || !last.Stale || best == last || !best.Left {
		t.Errorf("tests %+v", r.Tests)
	}
	if r.Files[0].Op != 13 || r.Open[0].Op != 2 || r.FilesOp != 13 {
		t.Errorf("files %+v of op %d, open %+v", r.Files, r.FilesOp, r.Open)
	}
	if len(r.Refused) != 1 || r.Refused[0] != (Count{"Bash(rm x): No user is present.", 1, 15}) {
		t.Errorf("refused %+v", r.Refused)
	}
	if len(r.Subagents) != 1 || r.Subagents[0].Text != "t.1 (explore): look: done after 1 step" ||
		r.Subagents[0].Op != 17 {
		t.Errorf("subagents %+v", r.Subagents)
	}
	if r.AskingTime != time.Minute || r.IdleTime != time.Minute || r.Doing == nil || r.Doing.Text != "Bash(make)" {
		t.Errorf("asking %v, idle %v, doing %+v", r.AskingTime, r.IdleTime, r.Doing)
	}
}

// TestPaths: a path begins where it left the others; only a process that goes on with an open turn was an interruption;
// what the user did is the user's.
func TestPaths(t *testing.T) {
	at := time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)
	var r Report
	seq := uint64(0)
	add := func(step int, bodies ...op.Body) {
		for _, b := range bodies {
			seq, at = seq+1, at.Add(time.Minute)
			r.Add(op.Op{Seq: seq, Step: step, Time: at, Body: b})
		}
	}
	check := func(passing, failing int, line string) *op.CheckRan {
		return &op.CheckRan{
			Passed: failing == 0,
			Checks: []op.Check{{Command: "go test", Passing: passing, Failing: failing, Line: line}}, Millis: 1_000,
		}
	}
	add(0, &op.TaskOpened{Task: "t"}, &op.UserSaid{Text: "go"},
		&op.GitSeen{Dir: ".", GitAt: op.GitAt{Head: "refs/heads/main", Commit: "1234567"}}, &op.WorldSaved{Commit: "c"})
	for step, parent := range []int{0, 0, 1, 2, 1, 4} {
		if step == 4 {
			add(3, &op.JumpRequested{To: 1}, &op.JumpDone{From: 3, To: 1, Backward: true})
		}
		if step > 0 {
			add(step, &op.WorldSaved{Commit: "c", Parent: parent, Changed: []string{"a"}},
				check(step%3, 2-step%3, "TestA"))
		}
	}
	add(5, &op.JumpDone{From: 5, To: 1, Backward: true}, &op.JumpDone{From: 1, To: 1, Backward: true})
	for i, want := range []Path{{First: 2, From: 3, To: 1}, {First: 4, From: 5, To: 1}, {First: 1, From: 1, To: 1}} {
		if p := r.Left[i]; p.First != want.First || p.From != want.From || p.To != want.To {
			t.Errorf("path %d is %+v, want %+v", i, p, want)
		}
	}
	if len(r.Goal) != 5 || r.Goal[4].Step != 5 || r.Goal[0].Fails != "TestA" || r.CheckTime != 5*time.Second {
		t.Errorf("checks %+v, %v", r.Goal, r.CheckTime)
	}

	limits := &op.Limits{Steps: 9}
	add(6, &op.TaskResumed{Limits: limits})
	if len(r.Breaks) != 0 {
		t.Errorf("a raised limit is an interruption: %+v", r.Breaks)
	}
	add(6, &op.TaskResumed{PID: 2}, &op.UserSaid{Text: "use make", Source: op.SourceAnswer},
		&op.WorldChanged{By: state.ChangedByUser, Changed: []string{"a", "mine"}})
	add(6, &op.GitSeen{Dir: ".", GitAt: op.GitAt{Head: "refs/heads/main", Commit: "7654321"}},
		&op.TurnEnded{Reason: "limit"}, &op.TaskResumed{PID: 3}, &op.JumpDone{From: 6, To: 5})
	if len(r.Breaks) != 1 || r.Ended == nil {
		t.Errorf("a jump after the end is an interruption: %+v, ended %+v", r.Breaks, r.Ended)
	}
	add(6, &op.TaskResumed{PID: 3, Continue: true})
	if len(r.Breaks) != 2 || r.Breaks[1].Text != "limit; resumed" || r.Ended != nil {
		t.Errorf("interruptions %+v, ended %+v", r.Breaks, r.Ended)
	}
	add(6, &op.QuestionAsked{About: op.AboutCall}, &op.QuestionAnswered{Answer: op.Answer{Allow: true}}, &op.LogSealed{},
		&op.TaskResumed{PID: 4})
	if len(r.Breaks) != 3 || r.Breaks[2].Text != "the process had ended while it waited for an answer; resumed" {
		t.Errorf("interruptions %+v", r.Breaks)
	}
	r.Files = []File{{Path: "a"}, {Path: "mine"}}
	r.Finish(func(step int) bool { return step > 3 }, false)
	if len(r.Left) != 2 || r.Left[0].From != 3 || r.Left[1].From != 1 {
		t.Errorf("the second path is the present one: %+v", r.Left)
	}
	if r.Files[0].Yours || !r.Files[1].Yours || len(r.Git) != 1 ||
		r.Git[0].Text != "HEAD of . was main at 1234567, is main at 7654321" {
		t.Errorf("files %+v, git %+v", r.Files, r.Git)
	}
	add(6, &op.GitSeen{Dir: ".", GitAt: op.GitAt{Head: "refs/heads/main", Commit: "1234567"}})
	if len(r.Git) != 0 {
		t.Errorf("HEAD is back: %+v", r.Git)
	}
}
