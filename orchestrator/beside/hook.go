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
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream"
	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/taskdir"
)

// maxContextBytes is how much one hook adds to the agent's context.
const maxContextBytes = 9_000

// Wait is how long a hook lets an agent wait. What takes longer continues without the agent. The
// agent's limit is 2 s; the rest is for the wrapper and the start and end of the processes, where
// many hooks begin at once.
const Wait = 1500 * time.Millisecond

// replyTime is how long before that the recorder must have replied, or the reply is lost.
const replyTime = 200 * time.Millisecond

// Hook records an event of another agent, which it reads from in. It first writes the event
// to disk, redacted, so that it is recorded even if this process is killed. Then
// the directory's recorder records it; recorders starts one if there is none. If recorders is
// nil or cannot start one, Hook records the event itself. answer is called with the reply, if
// there is one; if it fails because the agent no longer waits, the next reply repeats this one.
func Hook(ctx context.Context, svc *session.Service, agent sessions.Agent, in io.Reader, recorders *Recorders,
	answer func([]byte) error) error {
	h, began := svc.Home, time.Now()
	data, of, err := readEvent(in)
	if err != nil {
		return fmt.Errorf("the input of the hook is not an event, and was not recorded: %w", err)
	}
	dir := root(h, agent, of)
	if dir == "" || dir == h.User || dir == "/" || recordingOff(h, dir) { // the home directory is no world
		return nil
	}
	if of.Name == contextCut {
		reply, err := cutReply(svc, recordedIn(h, agent, of.SessionID, dir))
		return errors.Join(err, answer(reply))
	}
	event := fmt.Sprintf("%020d-%d-%s%s", time.Now().UnixNano(), os.Getpid(), agent, eventEnding) // they sort by time
	if err := errors.Join(spool(svc, dir, event, data), rememberSession(h, agent, of.SessionID, dir)); err != nil {
		return err
	}
	reply, err := []byte(nil), errNoRecorder
	if recorders != nil {
		ctx, cancel := context.WithDeadline(ctx, began.Add(cmp.Or(recorders.Wait, Wait-replyTime)))
		defer cancel()
		reply, err = recorders.ask(ctx, h, dir, event)
	}
	if errors.Is(err, errNoRecorder) {
		p := &place{svc: svc, dir: dir, unsure: true}
		return p.record(ctx, event, answer)
	}
	if len(reply) > 0 {
		err = errors.Join(err, answer(reply))
	}
	return err
}

// root is the directory of a session's world: the one it began in, or the top of its
// git repository. A folder that users share, such as /tmp, is no project, whatever is in it. If
// that directory is gone and the session continues elsewhere, it was moved.
func root(h taskdir.Home, agent sessions.Agent, e head) string {
	dir, err := session.RealDir(e.Cwd)
	if began := beganIn(h, agent, e.SessionID); began != "" {
		// A directory above the missing one is not where that was moved to.
		_, gone := os.Stat(began)
		if err != nil || !errors.Is(gone, os.ErrNotExist) || strings.HasPrefix(began, dir+"/") {
			return began
		}
	}
	if err != nil {
		return ""
	}
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if shared := err != nil || info.Mode()&os.ModeSticky != 0; !shared && at != h.User {
			if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
				return at
			}
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// beganIn returns the directory that a session was last recorded in; empty if it never was.
func beganIn(h taskdir.Home, agent sessions.Agent, id string) string {
	if name := sessionFile(h, agent, id); name != "" {
		text, err := os.ReadFile(name)
		if _, dir, ok := strings.Cut(string(text), "\n"); err == nil && ok {
			return dir
		}
	}
	if st, err := taskdir.ReadState(h, TaskOf(agent, id)); err == nil && !st.Opened.Origin.Imported() {
		return st.Opened.Dir
	}
	return ""
}

// RecordedIn returns the task in which a session that works in cwd is, or would be, recorded.
func RecordedIn(h taskdir.Home, agent sessions.Agent, id, cwd string) string {
	return recordedIn(h, agent, id, root(h, agent, head{SessionID: id, Cwd: cwd}))
}

// recordedIn is RecordedIn for the root of the session. The task has a number if the session
// was imported before, or recorded in a directory that was moved, or if its stream is damaged.
func recordedIn(h taskdir.Home, agent sessions.Agent, id, dir string) string {
	task := TaskOf(agent, id)
	for n := 2; ; n++ {
		st, err := taskdir.ReadState(h, task)
		damaged := errors.Is(err, opstream.ErrCorrupt)
		here := err == nil && st.Opened.Dir == dir && h.CheckOwn(&st.Opened) == nil
		if err != nil && !damaged || here && !st.Opened.Origin.Imported() {
			return task
		}
		task = numbered(agent, id, n)
	}
}

func numbered(agent sessions.Agent, id string, n int) string {
	return fmt.Sprintf("%s_%d", TaskOf(agent, id), n)
}

func rememberSession(h taskdir.Home, agent sessions.Agent, id, dir string) error {
	name := sessionFile(h, agent, id)
	text := folder(h, dir) + "\n" + dir
	if had, err := os.ReadFile(name); name == "" || err == nil && string(had) == text {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o600)
}

func all(h taskdir.Home) string { return filepath.Join(h.State, "beside") }

// folder returns the folder of a directory's recording: the waiting events, the open calls,
// the recorder's lock and socket.
func folder(h taskdir.Home, dir string) string { return folderOf(h, h.Store(dir)) }

func folderOf(h taskdir.Home, store string) string {
	return filepath.Join(all(h), strings.TrimSuffix(filepath.Base(store), ".git"))
}

// names are the fields of events that hold names. They are not redacted.
var names = []string{
	"session_id", "cwd", "transcript_path", "hook_event_name", "permission_mode", "model", "timestamp",
	"tool_name", "tool_use_id", "tool_call_id", "turn_id", "prompt_id",
}

// spool writes an event to the file of its name, without secrets.
func spool(svc *session.Service, dir, name string, data []byte) error {
	r := redact.New(nil, append(svc.TaskSecrets(dir, nil), redact.FromEnviron(os.Environ())...))
	data, _, err := r.JSON(data, &redact.JSONOptions{Keep: names})
	if err == nil {
		err = os.MkdirAll(folder(svc.Home, dir), 0o700)
	}
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Join(folder(svc.Home, dir), name), data, 0o600)
}

// spooled lists the waiting events of a directory in order.
func spooled(h taskdir.Home, dir string) ([]string, error) {
	entries, err := os.ReadDir(folder(h, dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var files []string
	for _, e := range entries { // sorted
		if strings.HasSuffix(e.Name(), eventEnding) {
			files = append(files, filepath.Join(folder(h, dir), e.Name()))
		}
	}
	return files, err
}

func spooledAt(file string) time.Time {
	var ns int64
	if _, err := fmt.Sscanf(filepath.Base(file), "%d-", &ns); err != nil {
		return time.Now()
	}
	return time.Unix(0, ns)
}

// readSpooled reads a waiting event. Its name says which agent it is of.
func readSpooled(file string) (*event, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return &event{}, err
	}
	parts := strings.SplitN(strings.TrimSuffix(filepath.Base(file), eventEnding), "-", 3)
	return decodeEvent(sessions.Agent(parts[len(parts)-1]), data)
}

// delivered is what a session's agent was shown, and its mode. If it is lost, the agent is
// shown the same again.
type delivered struct {
	Seq  uint64 `json:"seq"`  // the last operation that the agent was shown
	Mode string `json:"mode"` // the agent's permission mode
}

func deliveredFile(h taskdir.Home, task string) string {
	return filepath.Join(all(h), task+".json")
}

func readDelivered(h taskdir.Home, task string) (k delivered) {
	data, err := os.ReadFile(deliveredFile(h, task))
	if err == nil {
		_ = json.Unmarshal(data, &k)
	}
	return k
}

func save(h taskdir.Home, task string, k delivered) {
	data, err := json.Marshal(k)
	if err == nil {
		_ = os.WriteFile(deliveredFile(h, task), data, 0o600)
	}
}

// Planning reports whether the agent of a session is in plan mode.
func Planning(h taskdir.Home, task string) bool { return readDelivered(h, task).Mode == "plan" }

// fit cuts a text to what one hook may add.
func fit(text string) string {
	if len(text) <= maxContextBytes {
		return text
	}
	return quote.CutBytes(text, maxContextBytes) + "\n[cut; the tool show_operation shows the rest]"
}

// sessionFile is the file that names the folder of a session and its directory; empty for a
// session whose id cannot be part of a file's name.
func sessionFile(h taskdir.Home, agent sessions.Agent, id string) string {
	if len(id) > 100 || quote.Word(id) != id {
		return ""
	}
	return filepath.Join(all(h), "sessions", string(agent)+"_"+id)
}
