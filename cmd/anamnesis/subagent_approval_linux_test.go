package main

import (
	"strings"
	"testing"
)

// TestAskForSubagent: the calls of a subagent are asked about with its name, and
// the word given with a no reaches the subagent, not its parent, until a jump
// ends the subagent: the parent is told then.
func TestAskForSubagent(t *testing.T) {
	t.Parallel()
	heavy(t)
	dir := layAsked(t, `turns:
  - calls: [{name: Task, arguments: {subagent: coder, description: touch, prompt: Touch them.}}]
  - expect:
      - {on: result, contains: I touched one.}
      - {on: all-joined, lacks: leave the second alone}
    calls: [{name: jump_to_step, arguments: {step_id: 0, reason: another way}}]
  - expect:
      - {on: last, matches: 'What the user said in the steps you left still holds:\n- \S+\.1 op \d+ \(rejection\): leave the second alone\n'}
      - {on: last, lacks: "Touch them."}
    reply: It was careful.
subagents:
  - agent: coder
    turns:
      - calls: [{name: Bash, arguments: {command: touch first}}]
      - calls: [{name: Bash, arguments: {command: touch second}}]
      - expect: [{on: any, contains: leave the second alone}]
        reply: I touched one.
`)
	p := runAsked(t, dir)
	for _, answer := range []string{"y", "n leave the second alone"} {
		p.sees("? coder: Bash")
		p.answers(answer)
	}
	code, rest := p.ends()
	if code != 0 || !strings.Contains(rest, "It was careful.") {
		t.Errorf("exit %d:\n%s", code, rest)
	}
	if !strings.Contains(rest, "1 file changed") || inWorld(dir, "second") {
		t.Errorf("not exactly the approved commands ran:\n%s", rest)
	}
}
