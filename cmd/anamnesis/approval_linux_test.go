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
