package runtime

import (
	"anamnesis/orchestrator/guard/approval"
	"context"
	"testing"
)

// Calls that run at once may ask the user at once, whose answer for the whole
// task then changes the mode under all of them. The race detector looks on.
func TestAnswerForTaskAmongParallelCalls(t *testing.T) {
	rules, err := approval.ParseRules([]string{"Glob"}, approval.Ask, "")
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
`, Options{Approval: "ask", Rules: rules, Approve: func(context.Context, Question) Answer { return Answer{Allow: true, ForTask: true} }})
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "done" {
		t.Errorf("%+v, %v", out, err)
	}
}
