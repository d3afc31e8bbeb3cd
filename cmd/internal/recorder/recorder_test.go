//go:build unix

package recorder_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	assets "anamnesis"
	"anamnesis/cmd/internal/recorder"
	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
)

// TestMain makes this binary the program that hooks start.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == recorder.Verb {
		svc, err := newService()
		if err == nil {
			err = recorder.Run(context.Background(), svc, os.Args[2])
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func newService() (*session.Service, error) {
	return session.New(session.Options{Getenv: os.Getenv, Version: "test", EAS: assets.EAS})
}

// service returns the service of a home of the test's own, which a relative path names.
func service(t *testing.T) *session.Service {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("ANAMNESIS_HOME", "state")
	svc, err := newService()
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

// event is a hook's input.
func event(dir, name, more string) io.Reader {
	return strings.NewReader(fmt.Sprintf(`{"session_id":"s-1","cwd":%q,"hook_event_name":%q%s}`, dir, name, more))
}

func logged(t *testing.T, svc *session.Service) string {
	t.Helper()
	text, err := os.ReadFile(beside.Log(svc.Home))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// TestHook: hooks start one recorder, a process of this program in the same home that holds the directory's lock, and
// it records their events; the end of an agent's call does not end a hook.
func TestHook(t *testing.T) {
	svc := service(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	t.Cleanup(func() { _, _ = beside.StopRecorders(context.Background(), svc.Home) })
	var agents [2]int // a pipe of the agent, which the hook inherited and the recorder must not hold open
	if err := unix.Pipe(agents[:]); err != nil {
		t.Fatal(err)
	}
	for _, in := range []io.Reader{
		event(dir, "UserPromptSubmit", `,"prompt":"Go."`),
		event(dir, "PreToolUse", `,"tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t1"`),
		event(dir, "PostToolUse",
			`,"tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t1","tool_response":{"stdout":""}`),
		event(dir, "Stop", ""),
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		recorder.Hook(ctx, svc, sessions.Claude, in, w)
		if err := w.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("the wrapper still waits for the output: %v", err)
		}
		r.Close()
	}
	unix.Close(agents[1])
	end := []unix.PollFd{{Fd: int32(agents[0]), Events: unix.POLLIN}}
	if n, err := unix.Poll(end, 0); n != 1 || end[0].Revents&unix.POLLHUP == 0 {
		t.Errorf("the recorder holds a file of the agent: %d, %v", n, err)
	}
	unix.Close(agents[0])
	locks, err := filepath.Glob(filepath.Join(filepath.Dir(beside.Log(svc.Home)), "*", beside.LockFile))
	if err != nil || len(locks) != 1 {
		t.Fatalf("locks %q, %v", locks, err)
	}
	if _, err := durable.TryLock(locks[0]); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("no recorder holds the lock: %v", err)
	}
	if program, err := os.ReadFile(locks[0]); err != nil || string(program) != beside.Program() {
		t.Errorf("the recorder is of %q, %v", program, err)
	}
	if n, err := beside.StopRecorders(t.Context(), svc.Home); n != 1 || err != nil {
		t.Errorf("%d recorders ended: %v", n, err)
	}
	st, err := svc.State(beside.TaskOf(sessions.Claude, "s-1"))
	if err != nil || st.Opened.Dir != dir || st.Steps.CountEnded() != 2 || st.Turn.End == nil {
		t.Errorf("recorded %+v, %v", st, err)
	}
	if text := logged(t, svc); text != "" {
		t.Errorf("logged: %s", text)
	}
}

// panics is an input that cannot be read without a panic.
type panics struct{}

func (panics) Read([]byte) (int, error) { panic("odd input") }

// TestHookFails: an agent sees no error; the log has it.
func TestHookFails(t *testing.T) {
	for name, tt := range map[string]struct {
		in   io.Reader
		want string
	}{
		"no event": {strings.NewReader("rubbish"), "claude-code: the input of the hook is not an event"},
		"a panic":  {panics{}, "claude-code: panic: odd input"},
	} {
		svc := service(t)
		var out bytes.Buffer
		recorder.Hook(t.Context(), svc, sessions.Claude, tt.in, &out)
		if text := logged(t, svc); out.Len() > 0 || !strings.Contains(text, tt.want) {
			t.Errorf("%s: answered %q, logged %q", name, &out, text)
		}
	}
}

// writes lists when it was written to.
type writes struct{ at []time.Duration }

func (w *writes) Write(p []byte) (int, error) {
	w.at = append(w.at, time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)))
	return len(p), nil
}

// slow is an input that ends after a while.
type slow time.Duration

func (s slow) Read([]byte) (int, error) {
	time.Sleep(time.Duration(s))
	return 0, io.EOF
}

// TestHookLate: an agent waits for a hook no longer than it may, and gets one answer.
func TestHookLate(t *testing.T) {
	svc := service(t)
	for takes, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Minute: beside.Wait} {
		synctest.Test(t, func(t *testing.T) {
			var out writes
			recorder.Hook(t.Context(), svc, sessions.Claude, slow(takes), &out)
			if len(out.at) != 1 || out.at[0] != want {
				t.Errorf("an event that takes %v is answered after %v", takes, out.at)
			}
		})
	}
}

// TestRunAlone: a recorder that no hook started has no lock, and records nothing.
func TestRunAlone(t *testing.T) {
	svc := service(t)
	lock := filepath.Join(t.TempDir(), "lock")
	held, err := durable.TryLock(lock)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	other, err := os.Open(lock)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for name, files := range map[string][]*os.File{"no lock": nil, "a lock that another holds": {other}} {
		cmd := exec.Command(os.Args[0], recorder.Verb, t.TempDir())
		cmd.ExtraFiles = files
		if text, err := cmd.CombinedOutput(); err == nil || string(text) != "a recorder is started by hooks\n" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if text := logged(t, svc); text != "" {
		t.Errorf("logged: %s", text)
	}
}
