package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAttachAtTerminal: lines typed at an attached terminal answer what the task asks at its own one, or reach its
// agent; /stop ends its turn, and Ctrl-C leaves it running.
func TestAttachAtTerminal(t *testing.T) {
	dir := layAsked(t, `turns:
  - calls: [{name: Bash, arguments: {command: "touch began; until test -e go; do sleep 0.05; done"}}]
  - expect: [{on: any, contains: Mind the gap.}]
    calls: [{name: AskUser, arguments: {question: Which colour?}}]
  - expect: [{on: last, contains: no tabs}]
    calls: [{name: WriteFile, arguments: {path: a, content: b}}]
  - calls: [{name: Bash, arguments: {command: "until test -e never; do sleep 0.05; done"}}]
`)
	run := runAsked(t, dir, "--approval", "ask", "--allow", "Bash", "--grace", "0")
	run.sees("▸ Bash(touch began;")
	first := atTerminal(t, dir, "attach", "t")
	first.sees("▸ Bash(touch began;")
	if err := first.cmd.Process.Signal(os.Interrupt); err != nil { // ^C would also drop what is printed just then
		t.Fatal(err)
	}
	if code, rest := first.ends(); code != 0 ||
		!strings.Contains(rest, "t runs on; 'anamnesis attach t' shows it again") {
		t.Errorf("exit %d:\n%s", code, rest)
	}
	p := atTerminal(t, dir, "attach", "t")
	p.sees("a line that you type answers")
	p.types("Mind the gap.")
	p.sees("» Mind the gap.")
	p.types("/jump 0")
	p.sees("not sent: /jump is no command here")
	if err := os.WriteFile(filepath.Join(dir, "w", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.sees("Which colour?")
	p.types("no tabs")
	p.sees("answered op ")
	p.sees("from attach: no tabs")
	p.sees(" yes | always | no")
	p.types("perhaps") // goes to the agent
	p.sees("» perhaps")
	p.types("/answer perhaps")
	p.sees(`"perhaps" does not answer the question`)
	p.types("yes")
	p.sees("from attach: yes")
	p.sees("▸ Bash(until test -e never")
	p.types("/stop")
	p.sees("■ interrupted: the user stopped the turn from another terminal")
	if code, _ := run.ends(); code != 130 {
		t.Errorf("exit %d", code)
	}
	if code, rest := p.ends(); code != 0 || !strings.Contains(rest, "'anamnesis report t' says what happened") {
		t.Errorf("exit %d:\n%s", code, rest)
	}
}
