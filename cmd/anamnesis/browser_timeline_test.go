//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// timelineWords is a task that goes a wrong way, waits for the browser, jumps
// back over more than its attention span, and says what it can to act on a page.
const timelineWords = `turns:
  - reply: I look at what there is.
    calls:
      - {name: WriteFile, arguments: {path: notes.txt, content: "what I know\n"}}
  - reply: "<script>window.hostile = 1</script><img src=x onerror='window.hostile = 2'> I count \u202Eup."
    calls:
      - {name: Bash, arguments: {command: "printf '\\033]0;hostile\\007<svg onload=alert(1)>'; seq 1 3000; exit 3"}}
  - reply: I wait.
    calls:
      - {name: Bash, arguments: {command: "until [ -e go ]; do sleep 0.02; done; echo wrong > wrong.txt", timeout: 240}}
  - reply: That leads nowhere.
    calls:
      - {name: jump_to_step, arguments: {step_id: 1, reason: "counting up leads nowhere: a_word_without_any_place_to_break_that_is_far_wider_than_the_window_of_a_phone_and_than_half_of_a_desk"}}
  - reply: I write the greeting.
    calls:
      - {name: SetTodoList, arguments: {todos: [{title: Look around, status: done}, {title: Write the greeting, status: in_progress}]}}
      - {name: WriteFile, arguments: {path: hello.txt, content: "Hello, browser.\n"}}
  - reply: The greeting is written.
passes:
  - reply: |
      {"failure_causes": [], "falsified": [], "findings": [], "verified": [], "untried": [], "advice": [],
       "cards": [{"topic": "counting up ends with exit 3", "issue": ["Counting up leads nowhere: it exits 3"],
                  "solution": ["Write the greeting"], "constraint": ["Where nothing is counted"], "ops": [14]}]}
`

// TestBrowserTimeline follows a task that runs, in the browser, to its end.
func TestBrowserTimeline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	home, world, words := filepath.Join(dir, "home"), filepath.Join(dir, "world"), filepath.Join(dir, "words.yaml")
	if err := os.Mkdir(world, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(words, []byte(timelineWords), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd := exec.Command(os.Args[0], "run", "--dir", world, "--model", "script:"+words, "--eas", "4000", "--approval",
		"auto", "--task", "followed", "Write a greeting.")
	cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "ANAMNESIS_HOME="+home, "HOME="+home)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // where the story failed before it let the task go on
		<-ended
		if t.Failed() {
			t.Logf("the task said\n%s", out.String())
		}
	})
	browse(t, "timeline.cjs", startServe(t, home), map[string]any{"task": "followed", "go": filepath.Join(world, "go")})
	err := <-ended
	ended <- err
	if err != nil {
		t.Errorf("the task: %v\n%s", err, out.String())
	}
}
