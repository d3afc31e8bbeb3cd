package runtime

import (
	"context"
	"slices"
	"strings"
	"testing"

	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/taskdir"
)

// Calls that run at once may ask the user at once, whose answer for the whole
// task then changes the mode under all of them. The race detector looks on.
func TestAnswerForTaskAmongParallelCalls(t *testing.T) {
	rules, err := approval.ParseRules("", nil, []string{"Glob"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	task, _ := newTask(t, `
turns:
  - calls:
      - {name: Glob, arguments: {pattern: "a*"}}
      - {name: Glob, arguments: {pattern: "b*"}}
      - {name: Glob, arguments: {pattern: "c*"}}
      - {name: Glob, arguments: {pattern: "d*"}}
  - expect:
      - {on: result, lacks: "not run"}
    reply: done
`, Options{Guards: Guards{Approval: "ask", Rules: rules}, Callbacks: Callbacks{Approve: func(context.Context, gate.Question) gate.Answer { return gate.Answer{Allow: true, ForTask: true} }}})
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "done" {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestAnswerByEdit: a call that the user edited is asked about again, and the model is shown what ran.
func TestAnswerByEdit(t *testing.T) {
	var asked []string
	o := Options{Guards: Guards{Approval: "ask"},
		Callbacks: Callbacks{Approve: func(_ context.Context, q gate.Question) gate.Answer {
			if asked = append(asked, notice.BashCommand("Bash", q.Args)); len(asked) == 1 {
				return gate.Answer{Args: `{"command":"echo second"}`}
			}
			return gate.Answer{Allow: true}
		}}}
	task, _ := newTask(t, `
turns:
  - calls: [{name: Bash, arguments: {command: echo first}}]
  - expect:
      - {on: any, contains: 'The user edited this call before it ran. What ran has these arguments: {"command":"echo second"}'}
    reply: done
`, o)
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "done" ||
		!slices.Equal(asked, []string{"echo first", "echo second"}) {
		t.Errorf("%+v, %v, asked about %q", out, err, asked)
	}
}

// TestAnswerByPattern: what the user allowed by a pattern runs without a question for the
// rest of the task, in later processes, too; other commands and those of a rule that asks
// do not.
func TestAnswerByPattern(t *testing.T) {
	rules, err := approval.ParseRules("", nil, []string{"Bash(ls secret*)"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	o := Options{Guards: Guards{Approval: "ask", Rules: rules},
		Callbacks: Callbacks{Approve: func(_ context.Context, q gate.Question) gate.Answer {
			var like []string
			for _, r := range q.Like {
				like = append(like, r.String())
			}
			asked = append(asked, strings.TrimSpace(notice.BashCommand("Bash", q.Args)+" "+strings.Join(like, " ")))
			return gate.Answer{Allow: true, Like: len(q.Like) > 0}
		}}}
	task, h := newTask(t, `
turns:
  - calls:
      - {name: Bash, arguments: {command: ls -a}}
      - {name: Bash, arguments: {command: ls .}}
      - {name: Bash, arguments: {command: ls secret.txt}}
      - {name: Bash, arguments: {command: ls . ; touch b}}
  - reply: done
`, o)
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "done" {
		t.Fatalf("%+v, %v", out, err)
	}
	want := []string{"ls -a Bash(ls *)", "ls secret.txt", "ls . ; touch b"}
	if !slices.Equal(asked, want) {
		t.Errorf("asked about %q, want %q", asked, want)
	}
	if st, err := taskdir.ReadState(h, "t"); err != nil || !slices.Equal(st.Grants.Rules, []string{"Bash(ls *)"}) {
		t.Errorf("a later process knows %v (%v), want the pattern", st, err)
	}
}

// TestHopelessEdit: no user is asked about an edit that cannot be made. It fails with the reason.
func TestHopelessEdit(t *testing.T) {
	var asked []string
	o := Options{Guards: Guards{Approval: "ask"},
		Callbacks: Callbacks{Approve: func(_ context.Context, q gate.Question) gate.Answer {
			asked = append(asked, q.Args)
			return gate.Answer{Allow: true}
		}}}
	task, _ := newTask(t, `
turns:
  - calls: [{name: StrReplaceFile, arguments: {path: gone.txt, old: a, new: b}}]
  - expect: [{on: result, contains: "gone.txt: does not exist"}, {on: result, contains: Nothing was written}]
    calls: [{name: WriteFile, arguments: {path: f.txt, content: "a\n"}}]
  - calls: [{name: StrReplaceFile, arguments: {path: f.txt, old: z, new: b}}]
  - expect: [{on: result, contains: "old does not occur"}]
    calls: [{name: StrReplaceFile, arguments: {path: f.txt, old: a, new: b}}]
  - reply: done
`, o)
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "done" {
		t.Fatalf("%+v, %v", out, err)
	}
	if len(asked) != 2 || !strings.Contains(asked[0], `"content"`) || !strings.Contains(asked[1], `"old":"a"`) {
		t.Errorf("asked about %q, want the two edits that fit", asked)
	}
}

// TestQueued: what the user has queued is recorded before the next request, which holds it.
func TestQueued(t *testing.T) {
	queue := []string{"", "mind the tests"}
	task, _ := newTask(t, `
turns:
  - calls: [{name: Bash, arguments: {command: "true"}}]
  - expect: [{on: last, contains: mind the tests}]
    reply: done
`, Options{Guards: Guards{Approval: "auto"}, Callbacks: Callbacks{Queued: func() string {
		if len(queue) == 0 {
			return ""
		}
		text := queue[0]
		queue = queue[1:]
		return text
	}}})
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "done" {
		t.Fatalf("%+v, %v", out, err)
	}
}
