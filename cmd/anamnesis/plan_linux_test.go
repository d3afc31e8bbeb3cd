package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPlanMode plays a session that plans first: the plan is changed by words, edited in the editor, and accepted in
// another mode; then a plan that is left is found again by -c.
func TestPlanMode(t *testing.T) {
	t.Parallel()
	d := onScreen(t, 100, 34, `turns:
  - expect: [{on: last, contains: ["[plan mode", wants a plan before, fix the parser]}]
    calls: [{name: WriteFile, arguments: {path: a.txt, content: x}}]
  - expect: [{on: last, contains: WriteFile was not run}]
    reply: "1. write a.txt"
  - expect: [{on: last, contains: "test it, too", lacks: plan mode}]
    reply: "1. write a.txt\n2. test it"
  - expect: [{on: last, contains: ["[plan mode", user ended plan mode, "accepted as edited below", "1. write b.txt"]}]
    calls: [{name: WriteFile, arguments: {path: b.txt, content: x}}]
  - calls: [{name: Bash, arguments: {command: "`+holdOn+`"}}]
  - calls: [{name: WriteFile, arguments: {path: c.txt, content: x}}]
  - expect: [{on: last, contains: WriteFile was not run}]
    reply: "The second plan."
  - expect: [{on: last, contains: [user ended plan mode, Carry it out]}]
    calls: [{name: WriteFile, arguments: {path: c.txt, content: x}}]
  - reply: All done.
`)
	d.write("edit", "#!/bin/sh\nsed -i s/a.txt/b.txt/ \"$1\"\n")
	if err := os.Chmod(filepath.Join(d.dir, "edit"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.types("EDITOR=edit anamnesis --no-final-pass --model script:../words.yaml\n")
	d.sees("/help · @file")
	d.press("BTab")
	d.sees("approval edits")
	d.press("BTab")
	d.sees("plan mode (Shift-Tab) · /help")
	d.types("fix the parser\n")
	d.sees("Carry this plan out?", "❯ Yes, approval edits", "Yes, approval ask", "Yes, approval auto", "Edit the plan",
		"No, go on planning")
	d.golden("planned")
	if inWorld(d.dir, "a.txt") {
		t.Error("a file was written in plan mode")
	}
	d.types("test it, too\n")
	d.sees("2. test it", "Carry this plan out?")
	d.press("Down", "Down", "Down", "Enter")
	d.sees("the plan as you edited it:", "1. write b.txt", "Carry this plan out?")
	d.press("Enter")
	d.sees("the end of plan mode; approval edits", "● WriteFile b.txt", "? Bash", keysOffered)
	d.press("BTab") // the mode changes while a question waits, and the question stays
	d.sees("plan mode (Shift-Tab)", "? Bash")
	d.types("y")
	d.write("w/go", "")
	d.sees("The second plan.", "Carry this plan out?")
	d.press("Escape")
	d.gone("Carry this plan out?")
	d.press("BTab")
	d.sees("approval ask")
	d.press("BTab", "BTab")
	d.sees("Carry this plan out?") // the plan is there again
	d.press("Escape")
	d.gone("Carry this plan out?")
	d.press("C-c")
	d.sees("Ctrl-C again to leave")
	d.press("C-c")
	d.sees("'anamnesis -c' continues it")
	d.prompted()
	d.types("clear; anamnesis -c --model script:../words.yaml\n")
	d.sees("The second plan.", "Carry this plan out?", "plan mode (Shift-Tab)")
	d.press("Enter")
	d.answered("All done.")
	if !inWorld(d.dir, "b.txt") || !inWorld(d.dir, "c.txt") {
		t.Error("the plans were not carried out")
	}
}

// TestPlanModeHoldsSubagents: a subagent that is at work when plan mode begins changes nothing more.
func TestPlanModeHoldsSubagents(t *testing.T) {
	t.Parallel()
	d := onScreen(t, 100, 30, `turns:
  - calls: [{name: Task, arguments: {subagent: coder, description: do it, prompt: Do it.}}]
  - expect: [{on: result, contains: I was held back.}]
    reply: The plan then.
subagents:
  - agent: coder
    turns:
      - calls: [{name: Bash, arguments: {command: "`+holdOn+`"}}]
      - calls: [{name: WriteFile, arguments: {path: a.txt, content: x}}]
      - expect: [{on: result, contains: "WriteFile was not run: the task is in plan mode"}]
        reply: I was held back.
`)
	d.types("anamnesis --approval edits --no-final-pass --model script:../words.yaml 'do it'\n")
	d.sees("? coder: Bash", keysOffered)
	d.press("BTab")
	d.sees("plan mode: the agent reads and makes a plan", keysOffered)
	d.types("y")
	d.write("w/go", "")
	d.answered("The plan then.", "Carry this plan out?", "❯ Yes, approval edits")
	if inWorld(d.dir, "a.txt") {
		t.Error("the subagent wrote a file in plan mode")
	}
}

// TestApprovalsInEditor: a file that is about to be written, and the text of a replacement, are edited in the user's
// editor; an answer for the directory is offered and listed; an empty line answers nothing.
func TestApprovalsInEditor(t *testing.T) {
	t.Parallel()
	d := onScreen(t, 100, 34, `turns:
  - calls: [{name: WriteFile, arguments: {path: a.txt, content: "one\ntwo\n"}}]
  - expect: [{on: any, contains: "user edited"}]
    calls: [{name: StrReplaceFile, arguments: {path: a.txt, old: two, new: TWO}}]
  - calls: [{name: Bash, arguments: {command: "touch b"}}]
  - calls: [{name: AskUser, arguments: {question: "Which colour?"}}]
  - expect: [{on: last, contains: blue}]
    calls: [{name: Bash, arguments: {command: "touch b"}}]
  - reply: All done.
`)
	d.write("edit", "#!/bin/sh\ncp \"$1\" ../seen.${1##*.}\nsed -i 's/TWO/2/; s/one/1/' \"$1\"\n")
	if err := os.Chmod(filepath.Join(d.dir, "edit"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.types("EDITOR=edit anamnesis --no-final-pass --model script:../words.yaml 'write it'\n")
	d.sees("? WriteFile", "+ one", "w always here", keysOffered)
	d.types("e")
	d.sees("+ 1\n", keysOffered)
	d.types("y")
	d.sees("? StrReplaceFile", "+ TWO", keysOffered)
	d.types("e")
	d.sees("+ 2\n", keysOffered)
	d.types("y")
	d.sees("$ touch b", keysOffered)
	d.types("w")
	d.sees("Which colour?", "your answer (Esc ends the turn)")
	pressed := time.Now()
	d.until("refuse an empty line", func(screen string) bool {
		if time.Since(pressed) > 2*time.Second { // a key counts a second after the last one
			pressed = time.Now()
			d.press("Enter")
		}
		return strings.Contains(screen, "an empty line is no answer")
	})
	d.types("blue\n")
	d.answered("All done.")
	if data, err := os.ReadFile(filepath.Join(d.dir, "w", "a.txt")); err != nil || string(data) != "1\n2\n" {
		t.Errorf("a.txt is %q, %v", data, err)
	}
	if data, err := os.ReadFile(filepath.Join(d.dir, "seen.txt")); err != nil || string(data) != "TWO" {
		t.Errorf("the editor showed %q, %v", data, err)
	}
	d.press("C-c")
	d.sees("Ctrl-C again")
	d.press("C-c")
	d.sees("'anamnesis -c' continues it")
	d.prompted()
	d.types("clear; anamnesis rules\n")
	d.sees("Bash(touch b)")
}

// TestJobs: a background command is shown, read and ended by the user, who is asked before another one ends with the
// session; the agent is told.
func TestJobs(t *testing.T) {
	t.Parallel()
	d := onScreen(t, 100, 34, `turns:
  - calls:
      - {name: Bash, arguments: {command: "echo first line; sleep 600", run_in_background: true}}
      - {name: Bash, arguments: {command: "sleep 601", run_in_background: true}}
  - reply: Both run.
  - expect: [{on: last, contains: "[background"}, {on: last, contains: "(echo first line; sleep 600) was ended by the user"}]
    reply: You ended one.
`)
	d.types("anamnesis --approval auto --no-final-pass --model script:../words.yaml 'start them'\n")
	d.answered("Both run.", "2 jobs (/jobs)")
	d.types("/jobs\n")
	d.sees("bg_1 echo first line; sleep 600  runs, 11 bytes of output", "bg_2 sleep 601  runs", "/jobs stop ID ends it")
	d.types("/out bg_1\n")
	d.sees("\nfirst line\n")
	d.types("/jobs stop bg_9\n")
	d.sees(`there is no background task "bg_9"; there are bg_1, bg_2`)
	d.types("/jobs stop bg_1\n")
	d.sees("was ended by the user", "1 job (/jobs)")
	d.types("and now?\n")
	d.answered("You ended one.")
	d.types("/quit\n")
	d.sees("Leave, and end 1 background job? bg_2 sleep 601", "❯ Yes, end and leave")
	d.types("n")
	d.gone("Leave, and end")
	d.press("C-c")
	d.sees("Ctrl-C again to leave")
	d.press("C-c")
	d.sees("Leave, and end 1 background job?")
	d.press("Enter")
	d.sees("'anamnesis -c' continues it")
}
