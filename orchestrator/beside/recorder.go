package beside

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/taskdir"
)

// maxContextBytes is how much one hook adds to the agent's context.
const maxContextBytes = 9_000

// lockPause is how often the recorder's lock is asked for.
const lockPause = 2 * time.Millisecond

// maxLogBytes is the size at which the log of errors begins anew.
const maxLogBytes = 1 << 20

// OffFile in a project stops the recording there.
const OffFile = ".anamnesis/off"

// Paused is the file that stops all recording.
func Paused(h taskdir.Home) string { return filepath.Join(h.State, "beside", "paused") }

// Pause stops all recording, or ends that.
func Pause(h taskdir.Home, stop bool) error {
	if !stop {
		if err := os.Remove(Paused(h)); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(Paused(h)), 0o700); err != nil {
		return err
	}
	return os.WriteFile(Paused(h), nil, 0o600)
}

// Log is where hooks say what went wrong: their standard error must be empty.
func Log(h taskdir.Home) string { return filepath.Join(h.State, "beside", "errors.log") }

// LogError adds a line to the log.
func LogError(h taskdir.Home, what string, err error) {
	path := Log(h)
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogBytes {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	if os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	f, openErr := os.OpenFile(path, flags, 0o600)
	if openErr != nil {
		return
	}
	defer f.Close()
	fmt.Fprintf(f, "%s %s: %s\n", time.Now().UTC().Format(time.RFC3339), what, strings.Join(strings.Fields(err.Error()), " "))
}

// Errors returns how many errors the log of hooks holds, and the last one.
func Errors(h taskdir.Home) (n int, last string) {
	data, err := os.ReadFile(Log(h))
	if err != nil {
		return 0, ""
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return len(lines), lines[len(lines)-1]
}

// folder holds what a session's hooks were told and nobody has recorded yet, and what
// the agent was told.
func folder(h taskdir.Home, task string) string { return filepath.Join(h.State, "beside", task) }

// Hook records an event of another agent. The event is on disk before anything else,
// so that one hook may record what another was told. It returns the reply as soon as
// there is one, through answer, at most once.
func Hook(ctx context.Context, svc *session.Service, agent sessions.Agent, in io.Reader, answer func([]byte)) error {
	e, err := readEvent(agent, in)
	if err != nil {
		return err
	}
	h, task := svc.Home, TaskOf(agent, e.SessionID)
	dir := root(h, task, e.Cwd)
	if dir == "" || dir == h.User || dir == "/" || off(h, dir) {
		return nil
	}
	if e.Name == contextCut {
		reply, err := cutReply(svc, task)
		answer(reply)
		return err
	}
	own, err := spool(h, task, e)
	if err != nil {
		return err
	}
	for {
		unlock, err := lockWorld(ctx, h, dir)
		if err != nil {
			return err
		}
		text, err := drain(ctx, svc, task, dir, own, e.mayAdd())
		unlock()
		if text != "" {
			answer(e.reply(text))
		}
		if left, _ := filepath.Glob(filepath.Join(folder(h, task), "*.event")); err != nil || len(left) == 0 {
			return err
		}
		own = "" // another hook left its event while the last one was recorded
	}
}

func (e *event) mayAdd() bool { return slices.Contains(contextual[e.Agent], e.Name) }

// root is the directory of a session's world: the one it began in, or the top of its
// git repository.
func root(h taskdir.Home, task, cwd string) string {
	if st, err := taskdir.ReadState(h, task); err == nil {
		return st.Opened.Dir
	}
	dir, err := session.RealDir(cwd)
	if err != nil {
		return ""
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil && at != h.User {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

func off(h taskdir.Home, dir string) bool {
	for _, path := range []string{filepath.Join(dir, filepath.FromSlash(OffFile)), Paused(h)} {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}

// spool writes an event down, and returns its file.
func spool(h taskdir.Home, task string, e *event) (string, error) {
	dir := folder(h, task)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	data, err := json.Marshal(e)
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, fmt.Sprintf("%020d-%d.event", time.Now().UnixNano(), os.Getpid()))
	if err := os.WriteFile(name+".tmp", data, 0o600); err != nil {
		return "", err
	}
	return name, os.Rename(name+".tmp", name)
}

// lockWorld waits for the hooks that record in a directory.
func lockWorld(ctx context.Context, h taskdir.Home, dir string) (unlock func(), err error) {
	path := filepath.Join(h.State, "beside", filepath.Base(h.Store(dir))+".lock")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return func() { f.Close() }, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(lockPause):
		}
	}
}

// drain records the events of a session in their order, and returns what the agent is
// to be told with the event own, where that can add to its context.
func drain(ctx context.Context, svc *session.Service, task, dir, own string, adds bool) (string, error) {
	h := svc.Home
	files, err := filepath.Glob(filepath.Join(folder(h, task), "*.event"))
	if err != nil || len(files) == 0 {
		return "", err
	}
	slices.Sort(files)
	var t *runtime.Task
	lesson := ""
	for _, file := range files {
		var e event
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &e)
		}
		if err != nil {
			return "", err
		}
		if t == nil {
			if t, err = open(ctx, svc, task, dir, &e); err != nil {
				return "", err
			}
		}
		found, err := take(ctx, t, &e)
		if err != nil { // it must not stop what comes after it
			aside := os.Rename(file, strings.TrimSuffix(file, ".event")+".failed")
			return "", session.JoinClose(errors.Join(fmt.Errorf("%s: %w", e.Name, err), aside), t.Close())
		}
		if err := os.Remove(file); err != nil {
			return "", session.JoinClose(err, t.Close())
		}
		if file == own {
			lesson = found
		}
		saveMode(h, task, e.PermissionMode)
	}
	text := ""
	if adds && own != "" {
		news, err := (runtime.Outside{Task: t}).News(told(h, task).Seq)
		if err != nil {
			return "", session.JoinClose(err, t.Close())
		}
		text = fit(strings.TrimSpace(news + "\n\n" + lesson))
		Tell(h, task, t.State().Last)
	}
	return text, t.Close()
}

// fit cuts a text to what one hook may add.
func fit(text string) string {
	if len(text) <= maxContextBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxContextBytes], "") + "\n[cut; the tool show_operation shows the rest]"
}

// open opens the session's task, or makes it.
func open(ctx context.Context, svc *session.Service, task, dir string, e *event) (*runtime.Task, error) {
	o := runtime.Options{NoWatch: true, Program: svc.Program(), Secrets: svc.TaskSecrets(dir, nil), Recreate: true}
	if embedder, err := svc.Embedder(); err == nil {
		o.Embedder = embedder
	}
	if svc.Home.HasTask(task) {
		t, err := runtime.OpenTask(ctx, svc.Home, task, o)
		if !errors.Is(err, taskdir.ErrNoTask) {
			return t, err
		}
	}
	span, err := svc.Span(dir, cmp.Or(e.Model, "unknown"))
	if err != nil {
		return nil, err
	}
	request := cmp.Or(e.Prompt, "(the session began without a prompt)")
	return runtime.Create(ctx, svc.Home, runtime.New{
		ID: task, Dir: dir, Request: request, Model: cmp.Or(e.Model, string(e.Agent)), EAS: span.EAS, EASFrom: span.Source, Window: span.Advertised,
		Encoding: tokens.Estimate, Approval: "deny", Origin: &op.Origin{Agent: string(e.Agent), Session: e.SessionID},
	}, o)
}

// take records one event. The text names a card about the error of a failed call.
func take(ctx context.Context, task *runtime.Task, e *event) (lesson string, err error) {
	t := runtime.Outside{Task: task}
	first := task.State().Last <= 2
	switch e.Name {
	case "SessionStart":
		if first {
			return "", t.Unknown(ctx) // saves the beginning
		}
	case "UserPromptSubmit":
		if first && e.Prompt == task.State().Request {
			return "", t.Unknown(ctx)
		}
		if err := t.Unknown(ctx); err != nil {
			return "", err
		}
		return "", t.Said(ctx, e.Prompt)
	case "PreToolUse":
		if err := closeUntold(ctx, t, e); err != nil {
			return "", err
		}
		if c := e.call(task.Dir); c != nil {
			return "", t.Begin(ctx, callOf(c), e.Writes || writes(c))
		}
	case "PostToolUse", "PostToolUseFailure":
		e.match(t.Open())
		if c := e.call(task.Dir); c != nil {
			return t.Returned(ctx, callOf(c), e.Writes || writes(c), returned(c.ID, c))
		}
	case "PostToolBatch":
		return "", closeBatch(ctx, t, e)
	case "Stop":
		if err := closeUntold(ctx, t, e); err != nil {
			return "", err
		}
		return "", t.Answered(ctx, e.LastAnswer)
	case "SessionEnd":
		return "", t.Answered(ctx, "")
	}
	return "", nil
}

// closeUntold closes the calls whose result stands in Codex's rollout alone.
func closeUntold(ctx context.Context, t runtime.Outside, e *event) error {
	if e.Agent != sessions.Codex {
		return nil
	}
	for _, c := range t.Open() {
		done, ok := transcriptOutput(e.TranscriptPath, c)
		if !ok {
			continue
		}
		done.Normalise(t.Dir)
		if _, err := t.Returned(ctx, c, false, returned(c.ID, done)); err != nil {
			return err
		}
	}
	return nil
}

// closeBatch records the calls of a batch that no other event told of: those that were
// denied, and those that failed before they began.
func closeBatch(ctx context.Context, t runtime.Outside, e *event) error {
	for _, b := range e.ToolCalls {
		one := *e
		one.ToolName, one.ToolInput, one.ToolUseID = b.ToolName, b.ToolInput, b.ToolUseID
		c := one.call(t.Dir)
		if c == nil {
			continue
		}
		if had, err := t.Recorded(c.ID); err != nil {
			return err
		} else if had {
			continue
		}
		c.Text, c.Done, c.Failed = sessions.Text(b.ToolResponse), true, true
		if _, err := t.Returned(ctx, callOf(c), false, returned(c.ID, c)); err != nil {
			return err
		}
	}
	return nil
}

// known is what the agent was told, and the mode it is in. It is advice: without it
// the agent is told again.
type known struct {
	Seq  uint64 `json:"seq"`
	Mode string `json:"mode"`
}

func told(h taskdir.Home, task string) (k known) {
	data, err := os.ReadFile(filepath.Join(folder(h, task), "told.json"))
	if err == nil {
		_ = json.Unmarshal(data, &k)
	}
	return k
}

func save(h taskdir.Home, task string, k known) {
	data, err := json.Marshal(k)
	if err == nil {
		_ = os.WriteFile(filepath.Join(folder(h, task), "told.json"), data, 0o600)
	}
}

// Tell notes that the agent was told everything up to an operation.
func Tell(h taskdir.Home, task string, seq uint64) {
	k := told(h, task)
	k.Seq = seq
	save(h, task, k)
}

func saveMode(h taskdir.Home, task, mode string) {
	if k := told(h, task); mode != "" && k.Mode != mode {
		k.Mode = mode
		save(h, task, k)
	}
}

// Planning reports whether the agent of a session is in a mode that changes nothing.
func Planning(h taskdir.Home, task string) bool { return told(h, task).Mode == "plan" }

// Checkpoint saves the world of a recorded session as a step of its own.
func Checkpoint(ctx context.Context, svc *session.Service, task, note string) (int, error) {
	st, err := svc.State(task)
	if err != nil {
		return 0, err
	}
	unlock, err := lockWorld(ctx, svc.Home, st.Opened.Dir)
	if err != nil {
		return 0, err
	}
	defer unlock()
	t, err := open(ctx, svc, task, st.Opened.Dir, &event{})
	if err != nil {
		return 0, err
	}
	step, err := (runtime.Outside{Task: t}).Checkpoint(ctx, note)
	return step, session.JoinClose(err, t.Close())
}

// Jump makes a jump in a session that another agent works in, while none of the calls
// that its directory's sessions have told of is under way.
func Jump(ctx context.Context, svc *session.Service, task string, j op.JumpRequested) (session.Jumped, error) {
	st, err := svc.State(task)
	if err != nil {
		return session.Jumped{}, err
	}
	unlock, err := lockWorld(ctx, svc.Home, st.Opened.Dir)
	if err != nil {
		return session.Jumped{}, err
	}
	defer unlock()
	all, err := svc.Tasks()
	if err != nil {
		return session.Jumped{}, err
	}
	for _, other := range all {
		if other.Dir != st.Opened.Dir || other.Agent == "" || other.Imported {
			continue
		}
		if st, err := svc.State(other.ID); err == nil && st.Reply != nil && len(st.OpenCalls()) > 0 {
			return session.Jumped{}, fmt.Errorf("%w: %s of %s; jump when it has returned", runtime.ErrCallOpen, st.OpenCalls()[0].Name, other.ID)
		}
	}
	return svc.Jump(ctx, task, j, session.Client{})
}
