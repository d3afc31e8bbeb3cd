package beside_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
	"anamnesis/worldstate"
)

func TestMain(m *testing.M) {
	guard.SuperviseMain() // this binary also supervises commands
	os.Exit(m.Run())
}

// agent is another agent, whose hooks the test plays.
type agent struct {
	*testing.T
	svc  *session.Service
	dir  string
	id   string // of the session
	task string

	recorders *beside.Recorders // nil: each hook records by itself
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &agent{T: t, svc: service(t), dir: dir, id: "s-1", task: beside.TaskOf(sessions.Claude, "s-1")}
}

// hook tells of an event, and returns what it adds to the agent's context.
func (a *agent) hook(name string, more map[string]any) string {
	a.Helper()
	e := map[string]any{"session_id": a.id, "cwd": a.dir, "hook_event_name": name}
	maps.Copy(e, more)
	data, err := json.Marshal(e)
	if err != nil {
		a.Fatal(err)
	}
	text := ""
	err = beside.Hook(a.Context(), a.svc, sessions.Claude, strings.NewReader(string(data)), a.recorders,
		func(reply []byte) error {
			var r struct {
				Out struct{ HookEventName, AdditionalContext string } `json:"hookSpecificOutput"`
			}
			if err := json.Unmarshal(reply, &r); err != nil || r.Out.HookEventName != name {
				a.Errorf("reply to %s: %s", name, reply)
			}
			text += r.Out.AdditionalContext
			return nil
		})
	if err != nil {
		a.Fatalf("%s: %v", name, err)
	}
	return text
}

func bash(id, command string) map[string]any {
	return map[string]any{"tool_name": "Bash", "tool_input": map[string]string{"command": command}, "tool_use_id": id}
}

func (a *agent) ok(id, command string, effect func()) {
	a.Helper()
	call := bash(id, command)
	a.hook("PreToolUse", call)
	effect()
	call["tool_response"] = map[string]any{"stdout": "", "stderr": ""}
	a.hook("PostToolUse", call)
}

func (a *agent) write(name, text string) {
	a.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o600); err != nil {
		a.Fatal(err)
	}
}

func (a *agent) holds(name, want string) {
	a.Helper()
	if text, err := os.ReadFile(filepath.Join(a.dir, name)); string(text) != want || (err == nil) != (want != "") {
		a.Errorf("%s holds %q (%v), want %q", name, text, err, want)
	}
}

// TestRecorder: calls become steps with snapshots; a jump brings a directory back,
// keeps the user's edit and is told of.
func TestRecorder(t *testing.T) {
	t.Run("by hooks", func(t *testing.T) { testRecorder(newAgent(t)) })
	t.Run("by a recorder", func(t *testing.T) {
		a := newAgent(t)
		a.recorded("test", time.Hour)
		testRecorder(a)
	})
}

func testRecorder(a *agent) {
	t := a.T
	if err := os.Mkdir(filepath.Join(a.dir, "lib"), 0o700); err != nil {
		t.Fatal(err)
	}
	a.write("lib/x", "kept")
	a.write("a.go", "one")
	a.hook("SessionStart", nil)
	a.hook("UserPromptSubmit", map[string]any{"prompt": "Make it pass."})
	fail := bash("t1", "go test ./...")
	a.hook("PreToolUse", fail)
	fail["error"] = "Exit code 1\na_test.go:3: AssertionError: want 2"
	a.hook("PostToolUseFailure", fail)
	a.ok("t2", "rm -r lib", func() {
		if err := os.RemoveAll(filepath.Join(a.dir, "lib")); err != nil {
			t.Fatal(err)
		}
	})
	a.write("mine", "the user's")
	if told := a.hook("PreToolUse", bash("t3", "echo three > a.go")); !strings.Contains(told, "mine") {
		t.Errorf("the user's edit is told as %q", told)
	}
	if _, _, err := beside.Restore(t.Context(), a.svc, a.task, "1", worldstate.RestoreOptions{}); !errors.Is(err, runtime.ErrCallOpen) {
		t.Errorf("restored while a call is open: %v", err)
	}
	if _, err := beside.Jump(t.Context(), a.svc, a.task, "", op.JumpRequested{To: 1, Reason: "r"}, session.Client{}); !errors.Is(err, runtime.ErrCallOpen) {
		t.Errorf("a jump while a call is open: %v", err)
	}
	a.write("a.go", "three")
	done := bash("t3", "echo three > a.go")
	done["tool_response"] = map[string]any{"stdout": ""}
	a.hook("PostToolUse", done)
	if p, err := a.svc.PlanJump(t.Context(), a.task, "", op.JumpRequested{To: 1}); err != nil || p.Running ||
		p.UnderWay != 0 {
		t.Errorf("a dry run: %+v, %v", p, err)
	}
	if _, err := beside.Jump(t.Context(), a.svc, a.task, "", op.JumpRequested{To: 1, Reason: "lib is needed"}, session.Client{}); err != nil {
		t.Fatal(err)
	}
	a.holds("lib/x", "kept")
	a.holds("a.go", "one")
	a.holds("mine", "the user's")
	if told := a.hook("UserPromptSubmit", map[string]any{"prompt": "Go on."}); !strings.Contains(told, "lib is needed") || !strings.Contains(told, "lib/x") || !strings.Contains(told, "show_operation opens") || strings.Contains(told, "recall") || strings.Contains(told, "DISCARDED") {
		t.Errorf("the jump is told as %q", told)
	}
	a.ok("t4", "echo two > a.go", func() { a.write("a.go", "two") })
	a.ok("t5", "go test ./...", func() {})
	a.hook("Stop", map[string]any{"last_assistant_message": "Done."})
	st, err := a.svc.State(a.task)
	if err != nil {
		t.Fatal(err)
	}
	if st.Turn.End == nil || st.Turn.End.Reason != "done" || st.Steps.CountEnded() != 6 {
		t.Errorf("ended %+v, %d steps", st.Turn.End, st.Steps.CountEnded())
	}
	if _, err := a.svc.Resume(t.Context(), a.task, "Go on.", session.Settings{}, session.Client{}); err == nil {
		t.Error("a recorded session was resumed")
	}
}

// TestOverlap: calls that run at once are one step; one of which no result is told is
// closed by the batch, or when the turn ends.
func TestOverlap(t *testing.T) {
	a := newAgent(t)
	a.hook("UserPromptSubmit", map[string]any{"prompt": "Both."})
	one, two, three := bash("t1", "touch a"), bash("t2", "touch b"), bash("t3", "touch c")
	a.hook("PreToolUse", one)
	a.hook("PreToolUse", two)
	a.hook("PreToolUse", three)
	for _, c := range []map[string]any{one, two} {
		c["tool_response"] = map[string]any{"stdout": ""}
		a.hook("PostToolUse", c)
	}
	three["tool_response"] = "denied"
	a.hook("PostToolBatch", map[string]any{"tool_calls": []any{one, two, three}})
	st, err := a.svc.State(a.task)
	if err != nil || st.Steps.CountEnded() != 1 || len(st.Steps.At(1).Calls) != 3 {
		t.Fatalf("%d steps, calls %v, %v", st.Steps.CountEnded(), st.Steps.At(1).Calls, err)
	}
	a.hook("PreToolUse", bash("t4", "sleep 9"))
	a.hook("Stop", nil)
	if st, err = a.svc.State(a.task); err != nil || len(st.Reply.Open()) > 0 || st.Turn.End == nil {
		t.Errorf("after the turn: %+v, %v", st.Reply.Open(), err)
	}
	for _, m := range st.Context.Chat() {
		if m.Role == "assistant" && len(m.Calls) == 3 {
			return
		}
	}
	t.Error("the calls of one step are not one message")
}

// TestOff: nothing is recorded where the user does not want it, in the home directory,
// and of events that are none.
func TestOff(t *testing.T) {
	a := newAgent(t)
	if err := os.MkdirAll(filepath.Join(a.dir, ".anamnesis"), 0o700); err != nil {
		t.Fatal(err)
	}
	a.write(".anamnesis/off", "")
	a.hook("UserPromptSubmit", map[string]any{"prompt": "p"})
	b := newAgent(t)
	b.dir = b.svc.Home.User
	b.hook("UserPromptSubmit", map[string]any{"prompt": "p"})
	b.hook("Stop", nil)
	c := newAgent(t)
	if err := beside.Pause(c.svc.Home); err != nil {
		t.Fatal(err)
	}
	c.hook("UserPromptSubmit", map[string]any{"prompt": "p"})
	for i, x := range []*agent{a, b, c} {
		if x.svc.Home.HasTask(x.task) {
			t.Errorf("%d was recorded", i)
		}
	}
	for _, bad := range []string{"", "no", "{}", `{"session_id":1}`} {
		if err := beside.Hook(t.Context(), a.svc, sessions.Claude, strings.NewReader(bad), nil, func([]byte) error { t.Error("a reply"); return nil }); err == nil {
			t.Errorf("%q is an event", bad)
		}
	}
}

// TestRoot: the world is the top of the repository that the session began in, and not a
// folder that users share.
func TestRoot(t *testing.T) {
	for mode, want := range map[os.FileMode]string{0o755: "", 0o777 | os.ModeSticky: "sub"} {
		a := newAgent(t)
		top := a.dir
		a.dir = filepath.Join(top, "sub")
		if err := errors.Join(os.MkdirAll(filepath.Join(top, ".git"), 0o700), os.Mkdir(a.dir, 0o700), os.Chmod(top, mode)); err != nil {
			t.Fatal(err)
		}
		a.hook("UserPromptSubmit", map[string]any{"prompt": "p"})
		if st, err := a.svc.State(a.task); err != nil || st.Opened.Dir != filepath.Join(top, want) {
			t.Errorf("%v: the world is %s, %v", mode, st.Opened.Dir, err)
		}
	}
}

// TestRootStays: a session that continues in another directory is recorded where it began, also if the file that names
// the directory was cut or lost.
func TestRootStays(t *testing.T) {
	a := newAgent(t)
	a.hook("UserPromptSubmit", map[string]any{"prompt": "p"})
	file, elsewhere := filepath.Join(a.svc.Home.State, "beside", "sessions", string(sessions.Claude)+"_"+a.id), t.TempDir()
	for name, change := range map[string]func() error{
		"whole": func() error { _, err := os.Stat(file); return err },
		"cut":   func() error { return os.Truncate(file, 3) },
		"lost":  func() error { return os.Remove(file) },
	} {
		a.hook("UserPromptSubmit", map[string]any{"prompt": "p"})
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if task := beside.RecordedIn(a.svc.Home, sessions.Claude, a.id, elsewhere); task != a.task {
			t.Errorf("%s: recorded in %s", name, task)
		}
	}
	if task := beside.RecordedIn(a.svc.Home, sessions.Claude, "another", elsewhere); task != beside.TaskOf(sessions.Claude, "another") {
		t.Errorf("another session is recorded in %s", task)
	}
}

// TestWaitsRedacted: an event that waits to be recorded holds no secret, neither one of
// its hook's environment nor one that has a secret's form; names stay as they are.
func TestWaitsRedacted(t *testing.T) {
	a := newAgent(t)
	a.hook("UserPromptSubmit", map[string]any{"prompt": "p"})
	const formed, known = "ghp_0123456789abcdefghijABCDEFGHIJ012345", "correct-horse-battery"
	t.Setenv("DEPLOY_TOKEN", known)
	locks, err := filepath.Glob(filepath.Join(a.svc.Home.State, "beside", "*", "lock"))
	if err != nil || len(locks) != 1 {
		t.Fatalf("locks %q, %v", locks, err)
	}
	lock, err := os.Open(locks[0])
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what holds the lock is not waited for
	e, err := json.Marshal(map[string]any{"session_id": a.id, "cwd": a.dir, "hook_event_name": "PreToolUse",
		"tool_name": "Bash", "tool_use_id": "t1",
		"tool_input": map[string]string{"command": "deploy " + formed + " " + known}})
	if err != nil {
		t.Fatal(err)
	}
	if err := beside.Hook(ctx, a.svc, sessions.Claude, strings.NewReader(string(e)), nil, func([]byte) error { return nil }); err == nil {
		t.Error("the event was recorded")
	}
	waiting, err := filepath.Glob(filepath.Join(filepath.Dir(locks[0]), "*.event"))
	if err != nil || len(waiting) != 1 {
		t.Fatalf("waiting: %q, %v", waiting, err)
	}
	text, err := os.ReadFile(waiting[0])
	if err != nil || strings.Contains(string(text), formed) || strings.Contains(string(text), known) ||
		!strings.Contains(string(text), a.dir) || !strings.Contains(string(text), "deploy ") {
		t.Errorf("what waits is %s, %v", text, err)
	}
	lock.Close()
	a.hook("Stop", nil)
	st, err := a.svc.State(a.task)
	if err != nil || st.Steps.CountEnded() != 2 {
		t.Errorf("%d steps, %v", st.Steps.CountEnded(), err)
	}
}

// TestManyHooks: of hooks that run at once none is lost, and the order is theirs.
func TestManyHooks(t *testing.T) {
	a := newAgent(t)
	starts := a.recorded("test", time.Hour)
	a.hook("UserPromptSubmit", map[string]any{"prompt": "Many."})
	const n = 20
	errs := make(chan error, n)
	for i := range n {
		go func() {
			e := fmt.Sprintf(`{"session_id":"s-1","cwd":%q,"hook_event_name":"PostToolUse","tool_name":"Read","tool_input":{"file_path":"f%d"},"tool_use_id":"t%d","tool_response":"x"}`, a.dir, i, i)
			errs <- beside.Hook(t.Context(), a.svc, sessions.Claude, strings.NewReader(e), a.recorders,
				func([]byte) error { return nil })
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	// on a busy machine a hook leaves its event to the next one
	a.hook("Stop", nil)
	if st, err := a.svc.State(a.task); err != nil || st.Steps.CountEnded() != n+1 { // and the one that Stop ends
		t.Errorf("%d steps, %v", st.Steps.CountEnded(), err)
	}
	if n := starts.Load(); n != 1 {
		t.Errorf("%d recorders were started", n)
	}
}
