package reportview

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"anamnesis/anamnesis/testrun"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/report"
)

func long() *report.Report {
	r := &report.Report{Task: "t", Dir: "/w", Model: "m", State: "limit", Began: time.Unix(0, 0),
		Last: time.Unix(90, 0), Steps: 300, Ops: 3_000,
		Ended: &report.Line{Text: "limit: the turn has taken 300 steps", Op: 2_999}, Limit: op.LimitSteps,
		Usage: op.Usage{Prompt: 1}}
	for i := range 40 {
		seq := uint64(i + 10)
		r.Asked = append(r.Asked,
			report.Line{Text: fmt.Sprintf("request %d %s", i, strings.Repeat("word ", 60)), Op: seq})
		r.Left = append(r.Left, report.Path{From: i + 3, To: i, Reason: fmt.Sprintf("reason %d \x1b[31m", i), Op: seq})
		r.Files = append(r.Files, report.File{Path: fmt.Sprintf("f%d", i), Kind: "modified", Added: i})
		r.Outside = append(r.Outside, report.Line{Text: "curl <b>", Op: seq})
		r.Faults = append(r.Faults, report.Count{What: fmt.Sprintf("fault %d", i), N: i + 1, Op: seq})
	}
	return r
}

// TestScreen: a report of 300 steps fits on a screen, says what is missing, and prints no control characters.
func TestScreen(t *testing.T) {
	text := Text(long(), Options{Columns: 100})
	if n := strings.Count(text, "\n"); n > maxLines {
		t.Errorf("%d lines; want at most 40", n)
	}
	for _, want := range []string{"request 0", "request 39", "reason 39", "(--long)", "40 times: fault 39", "anamnesis resume t --max-steps N", "f39", "(op 2999)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("a control character")
	}
	for l := range strings.Lines(text) {
		if n := utf8.RuneCountInString(l); n > 101 {
			t.Errorf("%d columns: %s", n, l)
		}
	}
}

// TestLong: nothing is left out, and markdown shows no tags.
func TestLong(t *testing.T) {
	text := Text(long(), Options{Long: true, Markdown: true})
	for i := range 40 {
		if !strings.Contains(text, fmt.Sprintf("reason %d ", i)) ||
			!strings.Contains(text, fmt.Sprintf("fault %d ", i)) {
			t.Errorf("entry %d is missing", i)
		}
	}
	if strings.Contains(text, "curl <b>") {
		t.Error("a tag in markdown")
	}
}

// TestStates: a task that runs, waits or asks says so, with the command that answers.
func TestStates(t *testing.T) {
	running := func(change func(r *report.Report)) string {
		r := &report.Report{Task: "t", State: "running", Began: time.Unix(0, 0), Last: time.Unix(90, 0), Ops: 9}
		change(r)
		return Text(r, Options{})
	}
	for _, tt := range []struct {
		want   string
		change func(r *report.Report)
	}{
		{"the model is asked  (op 9)", func(*report.Report) {}},
		{"Bash(make)  (op 7)", func(r *report.Report) { r.Doing = &report.Line{Text: "Bash(make)", Op: 7} }},
		{"waits for the provider until 03:12  (op 5)", func(r *report.Report) { r.Waits, r.WaitsOp = "waits for the provider until 03:12", 5 }},
		{`anamnesis answer t "your answer"`, func(r *report.Report) {
			r.Questions = []report.Question{
				{Line: report.Line{Text: "Which?", Op: 6}, Asked: op.QuestionAsked{About: op.AboutAnswer}, Open: true},
			}
		}},
		{"go on with: anamnesis resume t\n", func(r *report.Report) { r.State = "interrupted" }},
		{"none differs", func(*report.Report) {}},
		{"“no, use make” (me, page) to: May Bash(echo word word", func(r *report.Report) {
			r.Questions = []report.Question{{
				Line:   report.Line{Text: "May Bash(echo " + strings.Repeat("word ", 99), Op: 6},
				Answer: "no, use make", By: "me, page",
			}}
		}},
		{"last: step 3, files changed since: 9 passed, 1 failed (Test_Test_", func(r *report.Report) {
			r.Tests = []report.Tests{
				{Step: 2},
				{Step: 3, Stale: true, Result: testrun.Result{Passed: 9, Failed: 1, Names: []string{strings.Repeat("Test_", 30)}}},
			}
		}},
		{"now: step 3: 9 passed", func(r *report.Report) {
			r.Tests = []report.Tests{{Step: 2}, {Step: 3, Result: testrun.Result{Passed: 9}}}
		}},
		{"Goal (3)          go test ./...\n                  first: step 0: 1 of 3 passed, fails: TestA  (op 5)\n                  best: step 2: 2 of 3 passed  (op 7)\n                  last: step 4: 0 of 3 passed  (op 9)\n" +
			"                  it passed at step 2 and fails at step 4; which step between broke it was not found (time)  (op 9)", func(r *report.Report) {
			r.Until, r.Best = "go test ./...", 7
			r.Goal = []report.Check{{Op: 5, Rating: op.Rating{Value: 1, Of: 3}, Fails: "TestA"},
				{Step: 2, Op: 7, Rating: op.Rating{Value: 2, Of: 3}},
				{Step: 4, Op: 9, Rating: op.Rating{Of: 3}, Broke: &op.Broke{Good: 2, Step: 4, Unfinished: "time"}}}
		}},
		{"steps 8-9, back to 3: wrong", func(r *report.Report) { r.Left = []report.Path{{First: 8, From: 9, To: 3, Reason: "wrong"}} }},
		{"an unfinished step, back to 3: wrong", func(r *report.Report) { r.Left = []report.Path{{First: 3, From: 3, To: 3, Reason: "wrong"}} }},
	} {
		if got := running(tt.change); !strings.Contains(got, tt.want) {
			t.Errorf("%q is missing in\n%s", tt.want, got)
		}
	}
}
