package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// layAsked makes a directory with a world and a recording in it.
func layAsked(t *testing.T, words string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "w"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "words.yaml"), []byte(words), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runAsked starts a run that asks at a terminal.
func runAsked(t *testing.T, dir string, args ...string) *terminal {
	t.Helper()
	return atTerminal(t, dir, append([]string{"run", "--dir", "w", "--model", "script:words.yaml", "--task", "t"}, append(args, "Go.")...)...)
}

func inWorld(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, "w", name))
	return err == nil
}

// TestAskNetwork: the network is a question of its own, and the word given with
// a no reaches the model.
func TestAskNetwork(t *testing.T) {
	dir := layAsked(t, `turns:
  - calls:
      - {name: Bash, arguments: {command: "touch first", network: true}}
  - calls:
      - {name: Bash, arguments: {command: "touch second", network: true}}
  - calls:
      - {name: Bash, arguments: {command: "touch third"}}
  - expect:
      - {on: any, contains: "use the mirror"}
    reply: I saw the word.
`)
	p := runAsked(t, dir)
	for _, row := range []struct{ question, answer string }{
		{"? Bash", "y"}, {"? Network", "y"},
		{"? Bash", "y"}, {"? Network", "n use the mirror"},
		{"? Bash", "y"},
	} {
		p.sees(row.question)
		p.sees("anything else")
		p.types(row.answer)
	}
	code, rest := p.ends()
	if code != 0 || !strings.Contains(rest, "I saw the word.") {
		t.Errorf("exit %d:\n%s", code, rest)
	}
	if !inWorld(dir, "first") || inWorld(dir, "second") || !inWorld(dir, "third") {
		t.Error("not exactly the approved commands ran")
	}
}

// TestAskOnce: yes is for one call, t for exactly this one in the task. Where a
// script is exchanged between the question and the answer, it does not run; an
// approval of a script ends with its bytes.
func TestAskOnce(t *testing.T) {
	dir := layAsked(t, `turns:
  - calls:
      - {name: Bash, arguments: {command: "sh do.sh first"}}
  - calls:
      - {name: Bash, arguments: {command: "sh do.sh second"}}
  - calls:
      - {name: Bash, arguments: {command: "touch between; sh do.sh second"}}
  - calls:
      - {name: Bash, arguments: {command: "sh do.sh second"}}
  - calls:
      - {name: Bash, arguments: {command: "echo 'touch evil' > do.sh"}}
  - calls:
      - {name: Bash, arguments: {command: "sh do.sh second"}}
  - expect:
      - {on: any, contains: "a script that this call runs was changed"}
    reply: That is all.
`)
	script := filepath.Join(dir, "w", "do.sh")
	write := func(text string) {
		if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("touch $1")
	p := runAsked(t, dir)
	ask := func(about, answer string) {
		t.Helper()
		p.sees("? Bash")
		if shown := p.sees("anything else"); !strings.Contains(shown, about) {
			t.Errorf("asked about %q, want %q", shown, about)
		}
		p.types(answer)
	}
	p.sees("? Bash")
	p.sees("anything else")
	write("touch swapped") // while the person looks at it
	p.types("y")
	ask("sh do.sh second", "t")
	ask("touch between", "y")
	// The fourth call is the second again: nobody is asked.
	ask("touch evil", "y")
	ask("sh do.sh second", "n no more of that")
	code, rest := p.ends()
	if code != 0 || !strings.Contains(rest, "That is all.") {
		t.Errorf("exit %d:\n%s", code, rest)
	}
	if inWorld(dir, "first") || inWorld(dir, "evil") || !inWorld(dir, "swapped") || !inWorld(dir, "between") {
		t.Error("not exactly what was approved ran")
	}
}
