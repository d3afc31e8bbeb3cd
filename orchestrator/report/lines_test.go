package report

import (
	"fmt"
	"testing"
	"time"

	"anamnesis/anamnesis/testrun"
	"anamnesis/opstream/op"
)

// made returns the report of some operations of step 2, a minute apart.
func made(bodies ...op.Body) *Report {
	r := new(Report)
	at := time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)
	r.Add(op.Op{Seq: 1, Time: at, Body: &op.TaskOpened{Task: "t", Dir: "/w"}})
	for i, b := range bodies {
		at = at.Add(time.Minute)
		r.Add(op.Op{Seq: uint64(i + 2), Step: 2, Time: at, Body: b})
	}
	return r
}

// TestLines: what single operations add to a report.
func TestLines(t *testing.T) {
	exit := func(n int) *int { return &n }
	call := func(command string) op.Body {
		return &op.ToolCalled{Call: "c", Name: "Bash", Args: `{"command":"` + command + `"}`}
	}
	ask := &op.QuestionAsked{Text: "Port?"}
	idle := func(r *Report) any { return r.IdleTime }
	asked := func(r *Report) any { return len(r.Asked) }
	answer := func(r *Report) any { return r.Answer != nil }
	tests := func(r *Report) any { return fmt.Sprint(len(r.Tests), r.ToolTime) }
	outside := func(r *Report) any {
		if len(r.Outside) == 0 {
			return ""
		}
		return r.Outside[0].Text
	}
	for _, tt := range []struct {
		name   string
		bodies []op.Body
		of     func(r *Report) any
		want   any
	}{
		{"a process takes over", []op.Body{&op.TaskResumed{PID: 1}}, idle, time.Minute},
		{"the same process goes on", []op.Body{&op.TaskResumed{}}, idle, time.Duration(0)},
		{"another model does", []op.Body{&op.TaskResumed{PID: 1, Why: "busy"}}, idle, time.Duration(0)},
		{"nothing to do", []op.Body{&op.TurnEnded{}, &op.LogSealed{}}, idle, time.Minute},

		{"a request", []op.Body{&op.UserSaid{Text: "go", Source: op.SourceRequest}}, asked, 1},
		{"a request beside a question", []op.Body{ask, &op.UserSaid{Text: "go", Source: op.SourceRequest}}, asked, 1},
		{"an answer", []op.Body{ask, &op.UserSaid{Text: "go", Source: op.SourceAnswer}}, asked, 0},
		{"an answer to no question", []op.Body{&op.UserSaid{Text: "go", Source: op.SourceAnswer}}, asked, 1},
		{"a rejection", []op.Body{ask, &op.UserSaid{Text: "no", Source: op.SourceRejection}}, asked, 0},
		{"a rejection of no question", []op.Body{&op.UserSaid{Text: "no", Source: op.SourceRejection}}, asked, 1},

		{"words", []op.Body{&op.ModelReplied{Text: "Done."}}, answer, true},
		{"no words", []op.Body{&op.ModelReplied{Text: " "}}, answer, false},
		{"words before a call", []op.Body{&op.ModelReplied{Text: "I look.", Calls: []op.Call{{ID: "a"}}}}, answer, false},

		{"a lesson", []op.Body{&op.JumpIntended{Card: "k1", Learned: "l"}}, func(r *Report) any { return r.Learned[0].Text }, "draft k1: l"},
		{"a lesson without a card", []op.Body{&op.JumpIntended{Learned: "l"}}, func(r *Report) any { return len(r.Learned) }, 0},
		{"a repository, once", []op.Body{&op.GitSeen{GitAt: op.GitAt{Commit: "1"}}}, func(r *Report) any { return len(r.Git) }, 0},
		{"a jump's files", []op.Body{&op.WorldSaved{}, &op.JumpDone{}}, func(r *Report) any { return r.FilesOp }, uint64(3)},
		{"an abandoned jump's", []op.Body{&op.WorldSaved{}, &op.JumpDone{Abandoned: true}}, func(r *Report) any { return r.FilesOp }, uint64(2)},

		{"a test run", []op.Body{call("pytest"), &op.ToolReturned{Call: "c", Name: "Bash", Text: "=== 3 passed in 0.1s ===", Exit: exit(0), Millis: 1}}, tests, "1 1ms"},
		{"a refused one", []op.Body{call("pytest"), &op.ToolReturned{Call: "c", Name: "Bash", Text: "=== 3 passed in 0.1s ===", Exit: exit(0), Millis: 1, Refused: true}}, tests, "0 0s"},
		{"one whose end is not known", []op.Body{call("pytest"), &op.ToolReturned{Call: "c", Name: "Bash", Millis: 1}}, tests, "0 1ms"},
		{"the user's time", []op.Body{&op.ToolReturned{Call: "c", Name: "AskUser", Exit: exit(0), Millis: 1}}, tests, "0 0s"},
		{"a file that quotes one", []op.Body{&op.ToolReturned{Call: "c", Name: "ReadFile", Text: "=== 3 passed in 0.1s ===", Exit: exit(0)}}, tests, "0 0s"},

		{"within", []op.Body{call("ls"), &op.ToolReturned{Call: "c", Name: "Bash", Exit: exit(0)}}, outside, ""},
		{"the network", []op.Body{call("ls"), &op.ToolReturned{Call: "c", Name: "Bash", Exit: exit(0), Network: true, Isolated: true}}, outside, "ls"},
		{"a push", []op.Body{call("git push"), &op.ToolReturned{Call: "c", Name: "Bash", Exit: exit(0)}}, outside, "git push"},
		{"a push without the network", []op.Body{call("git push"), &op.ToolReturned{Call: "c", Name: "Bash", Exit: exit(1), Isolated: true}}, outside, ""},
		{"a page", []op.Body{call("curl https://x.example"), &op.ToolReturned{Call: "c", Name: "Bash", Exit: exit(0)}}, outside, "curl https://x.example"},
		{"a page that is not there", []op.Body{call("curl https://x.example"), &op.ToolReturned{Call: "c", Name: "Bash", Exit: exit(1)}}, outside, "(failed, exit 1) curl https://x.example"},
	} {
		if got := tt.of(made(tt.bodies...)); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	r := made(ask, ask)
	if r.Asks() != nil {
		t.Errorf("no question is open: %+v", r.Asks())
	}
	r.Questions[0].Open = true
	if r.Asks() != &r.Questions[0] {
		t.Errorf("the first is open: %+v", r.Asks())
	}
	if r.Questions[1].Open = true; r.Asks() != &r.Questions[1] {
		t.Errorf("both are open: %+v", r.Asks())
	}
}

// TestFinishes: what a report says at the end depends on where the task is, and on whether a process works on it.
func TestFinishes(t *testing.T) {
	run := func(step int) op.Op {
		exit := 0
		return op.Op{
			Seq: 3, Step: step,
			Body: &op.ToolReturned{Call: "c", Name: "Bash", Text: "=== 3 passed in 0.1s ===", Exit: &exit},
		}
	}
	for _, tt := range []struct {
		name  string
		later op.Op
		left  int // a step that is not on the path
		want  string
	}{
		{"nothing changed", op.Op{Step: 3, Body: &op.WorldSaved{}}, 9, "false false"},
		{"files changed", op.Op{Step: 3, Body: &op.WorldSaved{Changed: []string{"a"}}}, 9, "false true"},
		{"in the same step", op.Op{Step: 2, Body: &op.WorldSaved{Changed: []string{"a"}}}, 9, "false false"},
		{"on another path", op.Op{Step: 3, Body: &op.WorldSaved{Changed: []string{"a"}}}, 3, "false false"},
		{"after it was left", op.Op{Step: 3, Body: &op.WorldSaved{Changed: []string{"a"}}}, 2, "true false"},
	} {
		r := made(&op.ToolCalled{Call: "c", Name: "Bash", Args: `{"command":"pytest"}`})
		r.Add(run(2))
		r.Add(tt.later)
		r.Finish(func(step int) bool { return step != tt.left }, false)
		if got := fmt.Sprint(r.Tests[0].Left, r.Tests[0].Stale); got != tt.want {
			t.Errorf("%s: left and stale %s, want %s", tt.name, got, tt.want)
		}
	}

	r := made()
	r.Add(op.Op{Seq: 2, Body: &op.WorldChanged{Changed: []string{"a"}}}) // before the first step
	r.Files, r.Open = []File{{Path: "a"}}, []Line{{Text: "x", Op: 7}}
	r.Left = []Path{{From: 2, To: 2}, {From: 3, To: 2}, {From: 4, To: 2}, {From: 1, To: 4}}
	r.Finish(func(step int) bool { return step < 4 }, true)
	if r.Files[0].Op != 0 || r.Open[0].Op != 7 || r.Doing != nil || len(r.Left) != 3 || r.Left[1].From != 4 {
		t.Errorf("files %+v, open %+v, doing %+v, left %+v", r.Files, r.Open, r.Doing, r.Left)
	}
	calls := []op.Body{
		&op.ToolCalled{Call: "a", Name: "Bash", Args: `{"command":"make a"}`},
		&op.ToolCalled{Call: "b", Name: "Bash", Args: `{"command":"make b"}`},
	}
	for range 20 { // the calls are in no order
		r := made(calls...)
		if r.Finish(func(int) bool { return true }, true); r.Doing == nil || r.Doing.Text != "Bash(make b)" {
			t.Fatalf("doing %+v", r.Doing)
		}
	}
	for running, bodies := range map[bool][]op.Body{false: calls, true: append(calls, &op.TurnEnded{})} {
		r := made(bodies...)
		if r.Finish(func(int) bool { return true }, running); r.Doing != nil {
			t.Errorf("a process works on it: %v; doing %+v", running, r.Doing)
		}
	}
}

// TestBestTests: a run that passed is better than one that did not, then the one with more passed tests, the first of
// equal ones.
func TestBestTests(t *testing.T) {
	run := func(step, passed int, status testrun.Status) Tests {
		return Tests{Step: step, Result: testrun.Result{Status: status, Passed: passed}}
	}
	ok, bad := testrun.Passed, testrun.Failed
	for _, tt := range []struct {
		runs []Tests
		best int
	}{
		{[]Tests{run(1, 3, bad), run(2, 2, ok)}, 2},
		{[]Tests{run(1, 2, ok), run(2, 3, bad)}, 1},
		{[]Tests{run(1, 2, ok), run(2, 3, ok), run(3, 3, ok)}, 2},
		{[]Tests{run(1, 3, bad), run(2, 3, bad), run(3, 2, bad)}, 1},
	} {
		r := Report{Tests: tt.runs}
		first, best, last := r.BestTests()
		if first != &r.Tests[0] || best.Step != tt.best || last != &r.Tests[len(r.Tests)-1] {
			t.Errorf("%+v: first %d, best %d, last %d", tt.runs, first.Step, best.Step, last.Step)
		}
	}
	if first, best, last := new(Report).BestTests(); first != nil || best != nil || last != nil {
		t.Error("no tests")
	}
}
