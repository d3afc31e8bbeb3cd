package beside

import (
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

	"anamnesis/orchestrator/beside/client"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/taskdir"
)

// maxContextBytes is how much one hook adds to the agent's context.
const maxContextBytes = 9_000

// Hook records an event of another agent, which it reads from in. file names the event,
// if client.Main gave it to a recorder, which may have written it down. The event is on
// disk, redacted, before anything else, so that it is recorded whatever becomes of this
// process: by the directory's recorder, which recorders starts if there is none, or here
// if recorders is nil or cannot. The reply goes through answer, if there is one.
func Hook(ctx context.Context, svc *session.Service, agent sessions.Agent, in io.Reader, file string, recorders *Recorders, answer func([]byte)) error {
	h := svc.Home
	if _, err := os.Lstat(file); file == "" || errors.Is(err, os.ErrNotExist) {
		data, head, err := client.Read(in)
		if err != nil {
			return fmt.Errorf("event of %s: %w", agent, err)
		}
		dir := root(h, agent, head)
		if dir == "" || dir == h.User || dir == "/" || off(h, dir) {
			return nil
		}
		if head.Name == client.ContextCut {
			reply, err := cutReply(svc, TaskOf(agent, head.SessionID))
			answer(reply)
			return err
		}
		if err := os.MkdirAll(folder(h, dir), 0o700); err != nil {
			return err
		}
		if file == "" {
			file = filepath.Join(folder(h, dir), client.EventName(string(agent)))
		}
		if err := spool(svc, dir, filepath.Base(file), data, os.Environ()); err != nil {
			return err
		}
		if err := knowSession(h, agent, head.SessionID, dir); err != nil {
			return err
		}
	}
	e, err := readSpooled(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it is recorded
	}
	if err != nil {
		return err
	}
	dir := root(h, agent, client.Head{SessionID: e.SessionID, Cwd: e.Cwd})
	event := filepath.Base(file)
	reply, err := []byte(nil), errNoRecorder
	if recorders != nil {
		ctx, cancel := context.WithDeadline(ctx, spooledAt(event).Add(client.Wait))
		defer cancel()
		reply, err = recorders.ask(ctx, h, dir, event)
	}
	if errors.Is(err, errNoRecorder) {
		p := &place{svc: svc, dir: dir, unsure: true}
		reply, err = p.record(ctx, event)
	}
	if len(reply) > 0 {
		answer(reply)
	}
	return err
}

func (e *event) mayAdd() bool { return slices.Contains(contextual[e.Agent], e.Name) }

// root is the directory of a session's world: the one it began in, or the top of its
// git repository.
func root(h taskdir.Home, agent sessions.Agent, e client.Head) string {
	if name := client.Session(all(h), string(agent), e.SessionID); name != "" {
		text, err := os.ReadFile(name)
		if _, dir, ok := strings.Cut(string(text), "\n"); err == nil && ok {
			return dir
		}
	}
	if st, err := taskdir.ReadState(h, TaskOf(agent, e.SessionID)); err == nil {
		return st.Opened.Dir
	}
	dir, err := session.RealDir(e.Cwd)
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

// knowSession writes down where a session is recorded, for client.Main.
func knowSession(h taskdir.Home, agent sessions.Agent, id, dir string) error {
	name := client.Session(all(h), string(agent), id)
	if _, err := os.Lstat(name); name == "" || err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(folder(h, dir)+"\n"+dir), 0o600)
}

// all is the folder of all recordings.
func all(h taskdir.Home) string { return filepath.Join(h.State, "beside") }

// folder holds what concerns the recording of a directory: events that nobody has
// recorded yet, the calls under way, the recorder's lock and socket.
func folder(h taskdir.Home, dir string) string { return folderOf(h, h.Store(dir)) }

func folderOf(h taskdir.Home, store string) string {
	return filepath.Join(all(h), strings.TrimSuffix(filepath.Base(store), ".git"))
}

// names are the fields of events that hold names, which are recorded as they are.
var names = []string{
	"session_id", "cwd", "transcript_path", "hook_event_name", "permission_mode", "model", "timestamp",
	"tool_name", "tool_use_id", "tool_call_id", "turn_id", "prompt_id",
}

// spool writes an event down under its name, without secrets. environ is the hook's. A
// hook and a recorder that hung may both do it.
func spool(svc *session.Service, dir, name string, data []byte, environ []string) error {
	r := redact.New(nil, append(svc.TaskSecrets(dir, nil), redact.FromEnviron(environ)...))
	data, _, err := r.JSON(data, &redact.JSONOptions{Keep: names})
	if err != nil {
		return err
	}
	path := filepath.Join(folder(svc.Home, dir), filepath.Base(name))
	temp := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// spooled lists the events of a directory that wait, in their order.
func spooled(h taskdir.Home, dir string) ([]string, error) {
	entries, err := os.ReadDir(folder(h, dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var files []string
	for _, e := range entries { // sorted
		if strings.HasSuffix(e.Name(), client.EventEnding) {
			files = append(files, filepath.Join(folder(h, dir), e.Name()))
		}
	}
	return files, err
}

// spooledAt is when an event was written down.
func spooledAt(file string) time.Time {
	var ns int64
	if _, err := fmt.Sscanf(filepath.Base(file), "%d-", &ns); err != nil {
		return time.Now()
	}
	return time.Unix(0, ns)
}

// readSpooled reads an event that was written down, of the agent that its name says.
func readSpooled(file string) (*event, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return &event{}, err
	}
	parts := strings.SplitN(strings.TrimSuffix(filepath.Base(file), client.EventEnding), "-", 3)
	return decodeEvent(sessions.Agent(parts[len(parts)-1]), data)
}

// known is what was told about a session and to its agent. It is advice: without it
// the agent is told again.
type known struct {
	Seq  uint64 `json:"seq"`  // the last operation that the agent was told of
	Mode string `json:"mode"` // the agent's
}

func knownFile(h taskdir.Home, task string) string {
	return filepath.Join(all(h), task+".json")
}

func told(h taskdir.Home, task string) (k known) {
	data, err := os.ReadFile(knownFile(h, task))
	if err == nil {
		_ = json.Unmarshal(data, &k)
	}
	return k
}

func save(h taskdir.Home, task string, k known) {
	data, err := json.Marshal(k)
	if err == nil {
		_ = os.WriteFile(knownFile(h, task), data, 0o600)
	}
}

// Tell notes that the agent was told everything up to an operation.
func Tell(h taskdir.Home, task string, seq uint64) {
	k := told(h, task)
	k.Seq = seq
	save(h, task, k)
}

// Planning reports whether the agent of a session is in a mode that changes nothing.
func Planning(h taskdir.Home, task string) bool { return told(h, task).Mode == "plan" }

// fit cuts a text to what one hook may add.
func fit(text string) string {
	if len(text) <= maxContextBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxContextBytes], "") + "\n[cut; the tool show_operation shows the rest]"
}
