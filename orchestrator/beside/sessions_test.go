package beside_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
)

// recorded has the agent's hooks start recorders, in this process, and counts them. They
// end with the test. The hooks wait until their events are recorded, however slow the disk is.
func (a *agent) recorded(program string, idle time.Duration) *atomic.Int32 {
	starts := new(atomic.Int32)
	var running sync.WaitGroup
	a.recorders = &beside.Recorders{Program: program, Wait: time.Hour, Start: func(dir string, lock *os.File) error {
		fd, err := syscall.Dup(int(lock.Fd())) // as a new process has it
		if err != nil {
			return err
		}
		held := os.NewFile(uintptr(fd), lock.Name())
		starts.Add(1)
		running.Go(func() {
			defer held.Close()
			if err := beside.Record(context.WithoutCancel(a.Context()), a.svc, dir, program, idle, func(err error) { a.Errorf("recorder: %v", err) }); err != nil {
				a.Errorf("recorder: %v", err)
			}
		})
		return nil
	}}
	a.Cleanup(func() {
		if _, err := beside.StopRecorders(context.Background(), a.svc.Home); err != nil {
			a.Errorf("stop: %v", err)
		}
		running.Wait()
	})
	return starts
}

// session returns another session in the same directory, with the same recorder.
func (a *agent) session(id string) *agent {
	b := *a
	b.id, b.task = id, beside.TaskOf(sessions.Claude, id)
	return &b
}

func (a *agent) returned(id, command string) {
	a.Helper()
	call := bash(id, command)
	call["tool_response"] = map[string]any{"stdout": "", "stderr": ""}
	a.hook("PostToolUse", call)
}

func (a *agent) jump(to int) error {
	a.Helper()
	_, err := beside.Jump(a.Context(), a.svc, a.task, "", op.JumpRequested{To: to, Reason: "r"}, session.Client{})
	return err
}

// TestTwoSessions: what another session changed is kept as the user's is. Where calls of
// both ran at once, whose a change is cannot be told, and jumps keep it; no jump is made
// while the other has a call under way.
func TestTwoSessions(t *testing.T) {
	a := newAgent(t)
	a.recorded("test", time.Hour)
	b := a.session("s-2")
	a.hook("UserPromptSubmit", map[string]any{"prompt": "One."})
	b.hook("UserPromptSubmit", map[string]any{"prompt": "Two."})
	a.ok("t1", "touch a", func() { a.write("a", "a") })
	b.ok("t2", "touch b", func() { a.write("b", "b") })
	b.hook("PreToolUse", bash("t3", "touch late"))
	if err := a.jump(0); !errors.Is(err, runtime.ErrCallOpen) || !strings.Contains(err.Error(), b.task) {
		t.Errorf("a jump while the other session has a call under way: %v", err)
	}
	b.returned("t3", "touch late")
	if err := a.jump(0); err != nil {
		t.Fatal(err)
	}
	a.holds("a", "")
	a.holds("b", "b")

	a.hook("UserPromptSubmit", map[string]any{"prompt": "Again."})
	a.hook("PreToolUse", bash("t4", "touch x"))
	b.hook("PreToolUse", bash("t5", "touch y"))
	a.write("x", "x")
	a.write("y", "y")
	b.returned("t5", "touch y")
	a.returned("t4", "touch x")
	st, err := a.svc.State(a.task)
	if err != nil {
		t.Fatal(err)
	}
	mixed := 0
	for _, s := range []*agent{a, b} {
		if err := a.svc.Ops(s.task, 0, func(o op.Op) error {
			if w, ok := o.Body.(*op.WorldSaved); ok && w.Mixed != "" {
				mixed++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if mixed != 2 || !st.Steps.At(st.Current).Saved {
		t.Errorf("%d steps are marked as mixed, want one of each session; saved %v", mixed,
			st.Steps.At(st.Current).Saved)
	}
	if err := a.jump(0); err != nil {
		t.Fatal(err)
	}
	a.holds("x", "x")
	a.holds("y", "y")
}

// spoolAt writes down an event as a hook did that was told of it some time ago.
func (a *agent) spoolAt(ago time.Duration, name, call string) {
	a.Helper()
	dirs, err := filepath.Glob(filepath.Join(a.svc.Home.State, "beside", "*", "lock"))
	if err != nil || len(dirs) != 1 {
		a.Fatalf("%v, %v", dirs, err)
	}
	text := fmt.Sprintf(`{"session_id":%q,"cwd":%q,"hook_event_name":%q,"tool_name":"Bash","tool_input":{"command":"touch a"},"tool_use_id":%q,"tool_response":{"stdout":""}}`,
		a.id, a.dir, name, call)
	file := fmt.Sprintf("%020d-1-claude-code.event", time.Now().Add(-ago).UnixNano())
	if err := os.WriteFile(filepath.Join(filepath.Dir(dirs[0]), file), []byte(text), 0o600); err != nil {
		a.Fatal(err)
	}
}

// TestLate: a step has no checkpoint where the agent went on before it was saved.
func TestLate(t *testing.T) {
	a := newAgent(t)
	a.recorded("test", time.Hour)
	a.hook("UserPromptSubmit", map[string]any{"prompt": "p"})
	a.hook("PreToolUse", bash("t1", "touch a"))
	a.spoolAt(time.Minute, "PostToolUse", "t1")
	a.spoolAt(50*time.Second, "PreToolUse", "t2")
	a.write("a", "of the second call")
	a.returned("t2", "touch a")
	st, err := a.svc.State(a.task)
	if err != nil {
		t.Fatal(err)
	}
	if one, two := st.Steps.At(1), st.Steps.At(2); one.Saved || one.NoCheckpoint == "" || !two.Saved {
		t.Errorf("step 1 saved %v (%s), step 2 saved %v", one.Saved, one.NoCheckpoint, two.Saved)
	}
	if err := a.jump(1); err == nil || !strings.Contains(err.Error(), "step 1") {
		t.Errorf("a jump to the step without a checkpoint: %v", err)
	}
}

// TestRecordedTwice: an event that a recorder recorded and did not live to remove is not
// recorded again.
func TestRecordedTwice(t *testing.T) {
	a := newAgent(t)
	a.hook("UserPromptSubmit", map[string]any{"prompt": "p"})
	a.ok("t1", "touch a", func() { a.write("a", "a") })
	for _, event := range []string{"PostToolUse", "PreToolUse"} {
		want, err := a.svc.State(a.task)
		if err != nil {
			t.Fatal(err)
		}
		a.spoolAt(time.Minute, event, "t1")
		a.hook("PostToolBatch", nil)
		if st, err := a.svc.State(a.task); err != nil ||
			event == "PostToolUse" && st.Steps.CountEnded() != want.Steps.CountEnded() {
			t.Errorf("%s: %d steps, want %d (%v)", event, st.Steps.CountEnded(), want.Steps.CountEnded(), err)
		}
	}
}

// TestOddEvent: an event with a field of another type is recorded without it, and one that a power
// failure truncated is reported. Neither keeps later events from being recorded.
func TestOddEvent(t *testing.T) {
	a := newAgent(t)
	a.hook("UserPromptSubmit", map[string]any{"prompt": "p", "model": map[string]string{"id": "m"}, "tool_calls": 5})
	a.spoolAt(time.Minute, "PreToolUse", "t0")
	files, err := filepath.Glob(filepath.Join(a.svc.Home.State, "beside", "*", "*"+".event"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	if err := os.Truncate(files[0], 0); err != nil {
		t.Fatal(err)
	}
	err = beside.Hook(t.Context(), a.svc, sessions.Claude,
		strings.NewReader(fmt.Sprintf(`{"session_id":%q,"cwd":%q,"hook_event_name":"PreToolUse","permission_mode":7}`,
			a.id, a.dir)), nil, nil)
	if err == nil || !strings.Contains(err.Error(), filepath.Base(files[0])+" was not recorded") {
		t.Errorf("the truncated event: %v", err)
	}
	a.ok("t1", "touch a", func() { a.write("a", "a") })
	if st, err := a.svc.State(a.task); err != nil || st.Steps.CountEnded() != 1 || st.Said.Request != "p" {
		t.Errorf("%d steps after %q, %v", st.Steps.CountEnded(), st.Said.Request, err)
	}
	log, err := os.ReadFile(beside.Log(a.svc.Home))
	if err != nil || !strings.Contains(string(log), "without model, which is a JSON object") ||
		!strings.Contains(string(log), "without permission_mode, which is a JSON number") {
		t.Errorf("log %s, %v", log, err)
	}
	if files, _ := filepath.Glob(files[0]); len(files) != 0 {
		t.Error("the truncated event still waits")
	}
}

// TestDamagedTask: a session whose stream is damaged is recorded in a second task. While a task
// cannot be opened, its events wait, and those of the directory's other sessions are recorded.
func TestDamagedTask(t *testing.T) {
	a := newAgent(t)
	b := a.session("s-2")
	a.hook("UserPromptSubmit", map[string]any{"prompt": "One."})
	b.hook("UserPromptSubmit", map[string]any{"prompt": "Two."})
	stream := filepath.Join(a.svc.Home.Task(a.task), "ops")
	if err := errors.Join(os.Rename(stream, stream+"-away"), os.WriteFile(stream, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	a.spoolAt(time.Minute, "PostToolUse", "t1")
	err := beside.Hook(t.Context(), a.svc, sessions.Claude,
		strings.NewReader(fmt.Sprintf(`{"session_id":%q,"cwd":%q,"hook_event_name":"Stop"}`, b.id, b.dir)), nil, nil)
	if st, stErr := b.svc.State(b.task); err == nil || stErr != nil || st.Turn.Open {
		t.Errorf("the other session: %v, %v", err, stErr)
	}
	if err := errors.Join(os.Remove(stream), os.Rename(stream+"-away", stream)); err != nil {
		t.Fatal(err)
	}
	b.hook("UserPromptSubmit", map[string]any{"prompt": "More."})
	if st, err := a.svc.State(a.task); err != nil || st.Steps.CountEnded() != 1 {
		t.Errorf("the event that waited: %v, %v", st, err)
	}

	files, err := filepath.Glob(filepath.Join(stream, "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], bytes.Replace(text, []byte("One."), []byte("Ono."), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	a.ok("t2", "touch a", func() { a.write("a", "a") })
	if st, err := a.svc.State(a.task + "_2"); err != nil || st.Steps.CountEnded() != 1 {
		t.Errorf("the second task: %v, %v", st, err)
	}
}

// TestAnotherProgram: a hook of another program ends the recorder and starts its own.
func TestAnotherProgram(t *testing.T) {
	a := newAgent(t)
	one := a.recorded("one", time.Hour)
	a.hook("UserPromptSubmit", map[string]any{"prompt": "p"})
	two := a.recorded("two", time.Hour)
	a.ok("t1", "touch a", func() { a.write("a", "a") })
	if one.Load() != 1 || two.Load() != 1 {
		t.Errorf("%d and %d recorders were started, want one of each", one.Load(), two.Load())
	}
	if st, err := a.svc.State(a.task); err != nil || st.Steps.CountEnded() != 1 {
		t.Errorf("%d steps, %v", st.Steps.CountEnded(), err)
	}
}

// TestLateHook: a hook whose time is over, since the disk was slow, starts a recorder, and its event
// is recorded.
func TestLateHook(t *testing.T) {
	a := newAgent(t)
	starts := a.recorded("test", time.Hour)
	late, cancel := context.WithCancel(t.Context())
	cancel()
	event := fmt.Sprintf(`{"session_id":%q,"cwd":%q,"hook_event_name":"UserPromptSubmit","prompt":"p"}`, a.id, a.dir)
	if err := beside.Hook(late, a.svc, sessions.Claude, strings.NewReader(event), a.recorders, nil); err != nil ||
		starts.Load() != 1 {
		t.Errorf("%d recorders were started, want one: %v", starts.Load(), err)
	}
	if n, err := beside.StopRecorders(t.Context(), a.svc.Home); n != 1 || err != nil {
		t.Fatalf("%d recorders ended, %v", n, err)
	}
	if st, err := a.svc.State(a.task); err != nil || !st.Turn.Open {
		t.Errorf("the request was not recorded: %v", err)
	}
}

// TestIdle: a recorder that nobody asks ends, and the next hook starts another.
func TestIdle(t *testing.T) {
	a := newAgent(t)
	starts := a.recorded("test", time.Nanosecond)
	for i := range 3 {
		a.ok(fmt.Sprint("t", i), "touch a", func() { a.write("a", fmt.Sprint(i)) })
	}
	if st, err := a.svc.State(a.task); err != nil || st.Steps.CountEnded() != 3 || starts.Load() < 2 {
		t.Errorf("%d steps, %v; %d recorders", st.Steps.CountEnded(), err, starts.Load())
	}
}

// TestFolderReplaced: a recorder whose folder was deleted, and made again by another, leaves the
// socket of that one.
func TestFolderReplaced(t *testing.T) {
	a := newAgent(t)
	a.recorded("test", time.Hour)
	a.hook("UserPromptSubmit", map[string]any{"prompt": "Go."})
	sockets, err := filepath.Glob(filepath.Join(a.svc.Home.State, "beside", "*", beside.SocketFile))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %q, %v", sockets, err)
	}
	folder := filepath.Dir(sockets[0])
	if err := errors.Join(os.Rename(folder, folder+"_old"), os.Mkdir(folder, 0o700), os.WriteFile(sockets[0], nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if n, err := beside.StopRecorders(t.Context(), a.svc.Home); n != 1 || err != nil {
		t.Fatalf("%d recorders ended, %v", n, err)
	}
	if _, err := os.Lstat(sockets[0]); err != nil {
		t.Error(err)
	}
}

// TestOthersWork: another process's task may work in the directory while a recorder
// keeps a session of it open.
func TestOthersWork(t *testing.T) {
	a := newAgent(t)
	a.recorded("test", time.Hour)
	a.hook("UserPromptSubmit", map[string]any{"prompt": "p"})
	task, err := runtime.Create(t.Context(), a.svc.Home, runtime.New{Request: "r",
		TaskOpened: op.TaskOpened{Task: "own", Dir: a.dir, EAS: 1000, Encoding: "o200k_base"}}, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Close(); err != nil {
		t.Fatal(err)
	}
	a.ok("t1", "touch a", func() { a.write("a", "a") })
	if st, err := a.svc.State(a.task); err != nil || st.Steps.CountEnded() != 1 {
		t.Errorf("%d steps, %v", st.Steps.CountEnded(), err)
	}
}

// TestLostReply: what a hook left before it was told, the next one tells.
func TestLostReply(t *testing.T) {
	a := newAgent(t)
	a.recorded("test", time.Hour)
	a.hook("UserPromptSubmit", map[string]any{"prompt": "p"})
	a.ok("t1", "touch a", func() { a.write("a", "a") })
	if err := a.jump(0); err != nil {
		t.Fatal(err)
	}
	sockets, err := filepath.Glob(filepath.Join(a.svc.Home.State, "beside", "*", beside.SocketFile))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("recorders of %q, %v", sockets, err)
	}
	dir, err := os.Open(filepath.Dir(sockets[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	lock, err := os.Open(filepath.Join(dir.Name(), "lock"))
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX) // the recorder waits for it
	}
	if err != nil {
		t.Fatal(err)
	}
	// an address holds few bytes
	hook, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), beside.SocketFile))
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("%020d-1-claude-code.event", time.Now().UnixNano())
	event := fmt.Sprintf(`{"session_id":%q,"cwd":%q,"hook_event_name":"UserPromptSubmit","prompt":"more"}`, a.id, a.dir)
	err = os.WriteFile(filepath.Join(dir.Name(), name), []byte(event), 0o600)
	if err == nil {
		_, err = fmt.Fprintf(hook, `{"verb":"event","program":"test","event":%q}`+"\n", name)
	}
	if err := errors.Join(err, hook.Close(), lock.Close()); err != nil {
		t.Fatal(err)
	}
	if told := a.hook("PreToolUse", bash("t2", "touch a")); !strings.Contains(told, "step 0") {
		t.Errorf("the next hook tells %q", told)
	}
}

// TestPrompts: cards enter with the prompt that they fit, once; a session that begins
// without a prompt has no words to look for.
func TestPrompts(t *testing.T) {
	a := newAgent(t)
	store, err := knowledgebase.Open(a.svc.Home.KnowledgeBase(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Apply(t.Context(), knowledgebase.Change{By: knowledgebase.Person, Cards: []*card.Card{
		{ID: "hasp22222222222", Topic: "frobnicator lock", State: card.Reviewed, SourceTask: "t", Issue: []string{"the frobnicator is locked by a stale hasp"}, Solution: []string{"delete hasp.pid"}},
		{ID: "none22222222222", Topic: "session", State: card.Reviewed, SourceTask: "t", Issue: []string{"the session began without a prompt"}, Solution: []string{"none"}},
	}})
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	if told := a.hook("SessionStart", nil); told != "" {
		t.Errorf("at the start: %s", told)
	}
	const trouble = "The frobnicator is locked by a hasp."
	for i, prompt := range []string{"Say hello.", trouble, trouble} {
		told := a.hook("UserPromptSubmit", map[string]any{"prompt": prompt})
		if (i == 1) != strings.Contains(told, "hasp22222222222") || i != 1 && told != "" {
			t.Errorf("%d, %s: %q", i, prompt, told)
		}
		a.hook("Stop", nil)
	}
}

// TestLostCards: cards for a prompt whose hook came too late come with the next event, once.
func TestLostCards(t *testing.T) {
	a := newAgent(t)
	store, err := knowledgebase.Open(a.svc.Home.KnowledgeBase(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Apply(t.Context(), knowledgebase.Change{By: knowledgebase.Person, Cards: []*card.Card{
		{ID: "hasp22222222222", Topic: "frobnicator lock", State: card.Reviewed, SourceTask: "t", Issue: []string{"the frobnicator is locked by a stale hasp"}, Solution: []string{"delete hasp.pid"}},
	}})
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	prompt := map[string]any{
		"session_id": a.id, "cwd": a.dir, "hook_event_name": "UserPromptSubmit",
		"prompt": "The frobnicator is locked by a hasp.",
	}
	data, err := json.Marshal(prompt)
	if err != nil {
		t.Fatal(err)
	}
	lost := ""
	if err := beside.Hook(t.Context(), a.svc, sessions.Claude, bytes.NewReader(data), nil, func(reply []byte) error {
		lost = string(reply)
		return context.DeadlineExceeded
	}); err != nil || !strings.Contains(lost, "hasp22222222222") {
		t.Fatalf("the late reply is %q, %v", lost, err)
	}
	if told := a.hook("PreToolUse", bash("t2", "ls")); !strings.Contains(told, "hasp22222222222") {
		t.Errorf("the next hook tells %q", told)
	}
	if told := a.hook("PreToolUse", bash("t3", "ls")); told != "" {
		t.Errorf("delivered a second time: %q", told)
	}
}

// TestMoved: a session that continues in a directory that was moved is recorded there, in a
// task of its own.
func TestMoved(t *testing.T) {
	a := newAgent(t)
	a.recorded("test", time.Hour)
	a.ok("t1", "touch a", func() { a.write("a", "a") })
	a.hook("Stop", nil)
	was := a.dir
	a.dir = filepath.Join(filepath.Dir(was), "moved")
	if err := os.Rename(was, a.dir); err != nil {
		t.Fatal(err)
	}
	a.ok("t2", "touch b", func() { a.write("b", "b") })
	st, err := a.svc.State(a.task + "_2")
	if err != nil || st.Opened.Dir != a.dir || st.Steps.CountEnded() != 1 {
		t.Fatalf("recorded in the new place: %+v, %v", st, err)
	}
	if _, err := os.Stat(was); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old place was made again: %v", err)
	}
}
