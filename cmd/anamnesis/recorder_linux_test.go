package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"anamnesis/cmd/internal/recorder"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// recorded is a directory in which the test plays the hooks of Claude Code, each a
// process of its own.
type recorded struct {
	*testing.T
	home, dir string
}

func newRecorded(t *testing.T) *recorded {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &recorded{t, filepath.Join(top, "home"), filepath.Join(top, "project")}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, err := r.run("pause"); err != nil {
			t.Errorf("pause: %v\n%s", err, out)
		}
		if left := commandLines(r.dir); len(left) > 0 {
			t.Errorf("processes are left: %q", left)
		}
	})
	return r
}

func (r *recorded) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "ANAMNESIS_HOME="+r.home, "HOME="+r.home)
	return cmd
}

func (r *recorded) run(args ...string) (string, error) {
	out, err := r.command(args...).CombinedOutput()
	return string(out), err
}

// start starts a hook; end checks that it ended as an agent needs it, and returns what
// it wrote.
func (r *recorded) start(session, event string, more map[string]any) (end func() string) {
	r.Helper()
	e := map[string]any{"session_id": session, "cwd": r.dir, "hook_event_name": event}
	maps.Copy(e, more)
	data, err := json.Marshal(e)
	if err != nil {
		r.Fatal(err)
	}
	cmd := r.command("hook", "claude-code", filepath.Join(r.home, "beside"))
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(data), &out, &errs
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	return func() string {
		r.Helper()
		if err := cmd.Wait(); err != nil || errs.Len() > 0 || out.Len() > 0 && !json.Valid(out.Bytes()) {
			r.Errorf("%s: %v, output %q, error %q", event, err, &out, &errs)
		}
		return out.String()
	}
}

func (r *recorded) hook(session, event string, more map[string]any) string {
	r.Helper()
	return r.start(session, event, more)()
}

// recorder is the process that keeps a task open; 0 if there is none.
func (r *recorded) recorder() int {
	r.Helper()
	h := taskdir.Home{State: r.home}
	ids, err := h.Tasks()
	if err != nil {
		r.Fatal(err)
	}
	for _, id := range ids {
		if pid := taskdir.Live(h, id); pid != 0 {
			return pid
		}
	}
	return 0
}

func toldCall(n int) map[string]any {
	return map[string]any{
		"tool_name": "Bash", "tool_use_id": fmt.Sprint("t", n), "tool_input": map[string]string{"command": "touch a"},
		"tool_response": map[string]any{"stdout": ""},
	}
}

// TestRecorderKilled: whenever the recorder is killed, or hangs, the agent continues, and
// each call it told of is recorded once.
func TestRecorderKilled(t *testing.T) {
	t.Parallel()
	heavy(t)
	r := newRecorded(t)
	r.hook("s", "UserPromptSubmit", map[string]any{"prompt": "Go."})
	const calls = 9
	killed := 0
	kill := func() {
		if pid := r.recorder(); pid != 0 {
			killed++
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
	for n := range calls {
		end := r.start("s", "PreToolUse", toldCall(n))
		if n%3 == 0 { // while the hook asks it, or before that
			kill()
		}
		end()
		if n%3 == 1 { // while the call runs
			kill()
		}
		if err := os.WriteFile(filepath.Join(r.dir, "a"), fmt.Appendf(nil, "%d", n), 0o600); err != nil {
			t.Fatal(err)
		}
		end = r.start("s", "PostToolUse", toldCall(n))
		if n%3 == 2 {
			kill()
		}
		end()
	}
	if killed == 0 {
		t.Fatal("no recorder was found to be killed")
	}
	// One that hangs may go on later, or be killed with what it was told and did not write.
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	after := []syscall.Signal{syscall.SIGCONT, syscall.SIGKILL}
	for n, signal := range after {
		pid := r.recorder()
		if pid == 0 {
			t.Fatal("no recorder runs after the last hook")
		}
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		call := toldCall(calls + n)
		call["tool_input"] = map[string]string{"command": "touch " + secret}
		if reply := r.hook("s", "PreToolUse", call); reply != "" {
			t.Errorf("a recorder that hangs answered %s", reply)
		}
		if out, err := exec.Command("grep", "-rl", secret, r.home).Output(); err == nil {
			t.Errorf("a secret stands in %s", out)
		}
		if err := syscall.Kill(pid, signal); err != nil {
			t.Fatal(err)
		}
		r.hook("s", "Notification", nil)
	}
	r.hook("s", "Stop", nil)
	results := map[string]int{}
	h := taskdir.Home{State: r.home}
	ids, err := h.Tasks()
	if err != nil || len(ids) != 1 {
		t.Fatalf("tasks %q, %v", ids, err)
	}
	if err := taskdir.EachOpSince(h, ids[0], 0, func(o op.Op) error {
		if b, ok := o.Body.(*op.ToolReturned); ok {
			results[b.Call]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for n := range calls + len(after) {
		if id := fmt.Sprint("t", n); results[id] != 1 {
			t.Errorf("call %s has %d results", id, results[id])
		}
	}
	if out, err := r.run("doctor", ids[0]); err != nil {
		t.Errorf("doctor: %v\n%s", err, out)
	}
}

// TestManySessions: sessions that work in a directory at once share one recorder, and
// none is left behind.
func TestManySessions(t *testing.T) {
	r := newRecorded(t)
	sessions, atOnce := 8, 4
	if *nightly {
		sessions, atOnce = 50, 200
	} else if os.Getenv("ANAMNESIS_CI") != "" {
		sessions, atOnce = 16, 60
	}
	for n := range sessions {
		r.hook(fmt.Sprint("s", n), "UserPromptSubmit", map[string]any{"prompt": "Go."})
	}
	if found := commandLines(recorder.Verb + " " + r.dir); len(found) != 1 {
		t.Errorf("%d recorders run, want one: %q", len(found), found)
	}
	var running sync.WaitGroup
	for n := range atOnce {
		running.Go(func() { r.hook(fmt.Sprint("s", n%sessions), "PreToolUse", toldCall(n)) })
	}
	running.Wait()
	r.hook("s0", "Notification", nil) // all that waited is recorded
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(5 * time.Millisecond) {
		waiting, err := filepath.Glob(filepath.Join(r.home, "beside", "*", "*.event"))
		if err != nil {
			t.Fatal(err)
		}
		if len(waiting) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("events wait: %q", waiting)
		}
	}
	h := taskdir.Home{State: r.home}
	ids, err := h.Tasks()
	if err != nil || len(ids) != sessions {
		t.Fatalf("%d tasks, %v", len(ids), err)
	}
	begun := 0
	for _, id := range ids {
		if err := taskdir.EachOpSince(h, id, 0, func(o op.Op) error {
			if _, ok := o.Body.(*op.ToolCalled); ok {
				begun++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if begun != atOnce {
		t.Errorf("%d calls were recorded, want %d", begun, atOnce)
	}
	if log, err := os.ReadFile(filepath.Join(r.home, "beside", "errors.log")); err == nil {
		t.Errorf("errors: %s", strings.TrimSpace(string(log)))
	}
}
