package main

import (
	"path/filepath"
	"testing"

	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/session"
)

// TestAnsweredElsewhere: an answer from another process takes a question away from the terminal that asks it, and
// the terminal's own counts for the next one.
func TestAnsweredElsewhere(t *testing.T) {
	dir := layAsked(t, `turns:
  - calls:
      - {name: Bash, arguments: {command: "touch first"}}
  - calls:
      - {name: AskUser, arguments: {question: "Which colour?"}}
  - calls:
      - {name: Bash, arguments: {command: "touch second"}}
  - expect:
      - {on: any, contains: "use make"}
      - {on: any, contains: "blue"}
    reply: I am done.
`)
	svc, err := session.New(session.Options{Getenv: func(name string) string {
		return map[string]string{"ANAMNESIS_HOME": filepath.Join(dir, ".home")}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	answer := func(text string) {
		t.Helper()
		if running, err := svc.Answer(t.Context(), "t", 0, text, question.FromPage); err != nil || !running {
			t.Fatalf("%q: %v, %v", text, running, err)
		}
	}
	p := runAsked(t, dir)
	p.sees("to the agent: ")
	answer("no use make")
	p.sees("from page: use make")
	p.sees("your answer (Ctrl-C ends the turn): ")
	answer("blue")
	p.sees("to the agent: ")
	p.types("y")
	p.sees("I am done.")
	if code, rest := p.ends(); code != 0 {
		t.Errorf("exit %d:\n%s", code, rest)
	}
	if inWorld(dir, "first") || !inWorld(dir, "second") {
		t.Errorf("first ran %v, second ran %v", inWorld(dir, "first"), inWorld(dir, "second"))
	}
	st, err := svc.State("t")
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Questions) != 0 {
		t.Errorf("questions are left: %+v", st.Questions)
	}
}
