//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// steeredWords is a task that asks, and then works without an end.
const steeredWords = `turns:
  - calls: [{name: WriteFile, arguments: {path: notes.txt, content: "what I know\n"}}]
  - calls: [{name: Bash, arguments: {command: "touch '<b>asked</b>'"}}]
  - expect: [{on: last, contains: use another name}]
    calls: [{name: Bash, arguments: {command: "touch other"}}]
  - calls: [{name: WriteFile, arguments: {path: more.txt, content: "more\n"}}]
  - calls: [{name: Grep, arguments: {pattern: more}}, {name: Bash, arguments: {command: "tail -f notes.txt", timeout: 240}}]
`

// TestBrowserSteer steers a task that runs without a terminal from its page, until its turn is ended there.
func TestBrowserSteer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	home, world, words := filepath.Join(dir, "home"), filepath.Join(dir, "world"), filepath.Join(dir, "words.yaml")
	if err := os.Mkdir(world, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(words, []byte(steeredWords), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd := exec.Command(os.Args[0], "run", "--dir", world, "--model", "script:"+words, "--when-asked", "wait",
		"--approval", "edits",
		"--allow", "Bash(tail *)", "--grace", "0", "--task", "steered", "Write a greeting.")
	cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "ANAMNESIS_HOME="+home, "HOME="+home)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // where the story failed before it ended the turn
		<-ended
		if t.Failed() {
			t.Logf("the task said\n%s", out.String())
		}
	})
	browse(t, "steer.cjs", startServe(t, home), map[string]any{"task": "steered"})
	ended <- <-ended
	if cmd.ProcessState.ExitCode() != 130 ||
		!strings.Contains(out.String(), "interrupted: the user stopped the turn from the page") {
		t.Errorf("the task: exit %d", cmd.ProcessState.ExitCode())
	}
}
