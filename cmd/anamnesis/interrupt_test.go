//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"anamnesis/cmd/internal/exit"
)

// words is a recording whose first command never ends by itself.
const words = `turns:
  - calls:
      - {name: Bash, arguments: {command: "echo $$ > started; exec cat /dev/zero > /dev/null", timeout: 300}}
      - {name: Bash, arguments: {command: "touch never"}}
  - expect:
      - {on: any, matches: "Interrupted by the user|Outcome unknown"}
    reply: I went on.
`

// running is a program under test.
type running struct {
	cmd   *exec.Cmd
	out   bytes.Buffer
	world string
	home  string
}

// startRun starts a run and waits until its first command is at work.
func startRun(t *testing.T) *running {
	t.Helper()
	dir := t.TempDir()
	r := &running{world: filepath.Join(dir, "w"), home: filepath.Join(dir, "home")}
	if err := os.Mkdir(r.world, 0o755); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "words.yaml")
	if err := os.WriteFile(script, []byte(words), 0o644); err != nil {
		t.Fatal(err)
	}
	r.cmd = exec.Command(os.Args[0], "run", "--dir", r.world, "--model", "script:"+script, "--approval", "auto",
		"--task", "t", "Go.")
	r.cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "ANAMNESIS_HOME="+r.home)
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	r.await(t, func() bool {
		info, err := os.Stat(filepath.Join(r.world, "started"))
		return err == nil && info.Size() > 0
	})
	return r
}

// await polls for something another process does.
func (r *running) await(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(waitLimit); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("did not come about within %v", waitLimit)
		}
	}
}

// commandGone says whether the command's process has ended: none works in the
// world any more. The number it has itself is one of its own namespace.
func (r *running) commandGone(t *testing.T) bool {
	world, err := filepath.EvalSymlinks(r.world)
	if err != nil {
		t.Fatal(err)
	}
	procs, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil || len(procs) == 0 {
		t.Fatalf("no processes: %v", err)
	}
	for _, p := range procs {
		if dir, err := os.Readlink(p); err == nil && dir == world {
			return false
		}
	}
	return true
}

// resumes checks that the task continues and that nothing ran twice or at all
// that was not begun.
func (r *running) resumes(t *testing.T) {
	t.Helper()
	out, err := program(t.Context(), []string{"ANAMNESIS_HOME=" + r.home}, "resume", "t")
	if err != nil || !strings.Contains(out, "I went on.") {
		t.Errorf("resume: %v\n%s", err, out)
	}
}

// TestInterrupt: the first Ctrl-C ends the turn with everything recorded.
func TestInterrupt(t *testing.T) {
	r := startRun(t)
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := r.cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != exit.Interrupted {
		t.Fatalf("ended with %v, want exit code %d\n%s", err, exit.Interrupted, r.out.String())
	}
	if !r.commandGone(t) {
		t.Error("the command is still running")
	}
	if !strings.Contains(r.out.String(), "interrupted; 'anamnesis resume t' continues it") {
		t.Errorf("says nothing of resuming:\n%s", r.out.String())
	}
	if _, err := os.Stat(filepath.Join(r.world, "never")); err == nil {
		t.Error("the second call ran after the interruption")
	}
	r.resumes(t)
}

// TestLeaveAtOnce: a process that dies in the middle of a command leaves no
// command behind, and the task continues.
func TestLeaveAtOnce(t *testing.T) {
	r := startRun(t)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait()
	r.await(t, func() bool { return r.commandGone(t) })
	r.resumes(t)
	if _, err := os.Stat(filepath.Join(r.world, "never")); err != nil {
		t.Error("the second call, which had not begun, was not run after the resume")
	}
}
