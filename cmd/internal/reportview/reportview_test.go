package reportview

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/report"
)

func long() *report.Report {
	r := &report.Report{Task: "t", Dir: "/w", Model: "m", State: "done", Began: time.Unix(0, 0), Last: time.Unix(90, 0), Steps: 300, Ops: 3_000,
		Ended: &report.Line{Text: "limit: the turn has taken 300 steps", Op: 2_999}, Usage: op.Usage{Prompt: 1}}
	for i := range 40 {
		seq := uint64(i + 10)
		r.Asked = append(r.Asked, report.Line{Text: fmt.Sprintf("request %d %s", i, strings.Repeat("word ", 60)), Op: seq})
		r.Left = append(r.Left, report.Path{From: i + 3, To: i, Reason: fmt.Sprintf("reason %d \x1b[31m", i), Op: seq})
		r.Files = append(r.Files, report.File{Path: fmt.Sprintf("f%d", i), Kind: "modified", Added: i})
		r.Outside = append(r.Outside, report.Line{Text: "curl <b>", Op: seq})
		r.Faults = append(r.Faults, report.Count{What: fmt.Sprintf("fault %d", i), N: i + 1, Op: seq})
	}
	return r
}

// TestScreen: a report of 300 steps fits on a screen, says what is missing, and prints no control characters.
func TestScreen(t *testing.T) {
	text := Text(long(), false, false)
	if n := strings.Count(text, "\n"); n > 50 {
		t.Errorf("%d lines; want at most 50", n)
	}
	for _, want := range []string{"request 0", "request 39", "reason 39", "32 more before", "40 times: fault 39", "anamnesis resume t", "f39", "(op 2999)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("a control character")
	}
	for l := range strings.Lines(text) {
		if len(l) > 2*width {
			t.Errorf("a long line: %s", l)
		}
	}
}

// TestLong: nothing is left out, and markdown shows no tags.
func TestLong(t *testing.T) {
	text := Text(long(), true, true)
	for i := range 40 {
		if !strings.Contains(text, fmt.Sprintf("reason %d ", i)) || !strings.Contains(text, fmt.Sprintf("fault %d ", i)) {
			t.Errorf("entry %d is missing", i)
		}
	}
	if strings.Contains(text, "curl <b>") {
		t.Error("a tag in markdown")
	}
}
