// Package client sends a hook's event to a running recorder. It imports few packages, and
// none whose path sorts late, so that it is initialised long before the rest of the program:
// see cmd/internal/hookmain.
package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// Wait is how long an agent waits for a hook at most. What takes longer goes on without
// it.
const Wait = 1800 * time.Millisecond

// keepWait is how long a hook waits for the recorder to confirm that the event is on disk.
// After that the hook writes the event itself, in the rest of Wait.
const keepWait = 900 * time.Millisecond

// Files in the folder of a recorded directory, beside the waiting events.
const (
	LockFile    = "recorder.lock" // locked by the recorder to its end
	SocketFile  = "recorder.sock"
	EventEnding = ".event"
)

// OffFile in a project stops the recording there, PausedFile in the folder of all
// recordings everywhere.
const (
	OffFile    = ".anamnesis/off"
	PausedFile = "paused"
)

const (
	maxEventBytes = 32 << 20
	maxReplyBytes = 1 << 20
)

// Request is a request to a recorder, a line of JSON.
type Request struct {
	Verb    string `json:"verb"`    // EventVerb, StopVerb, or that of taskdir.CloseVerb
	Program string `json:"program"` // see Program
	Event   string `json:"event"`   // the name of the hook's own
	// Data is the event, which the recorder redacts and writes to the file of its name; empty:
	// that file exists.
	Data    json.RawMessage `json:"data,omitempty"`
	Environ []string        `json:"environ"` // the hook's: its secrets are redacted
}

// The verbs.
const (
	EventVerb = "event" // an event waits
	StopVerb  = "stop"  // end the recorder
)

// Reply is a recorder's answer, a line of JSON. To a request with an event in it there
// are two: the first, when the event is on disk, and the second, when it is recorded.
type Reply struct {
	OK    bool   `json:"ok"`
	Reply []byte `json:"reply"` // for the agent
	Ends  bool   `json:"ends"`  // the recorder is of another program, and ends
}

// ContextCut is the event by which the plugin of opencode asks which calls a jump has
// left. It is answered and not recorded.
const ContextCut = "ContextCut"

// Head is what a hook reads of an event.
type Head struct {
	SessionID string `json:"session_id"`
	Cwd       string `json:"cwd"`
	Name      string `json:"hook_event_name"`
}

// Read reads an event from a hook's standard input.
func Read(in io.Reader) (data []byte, head Head, err error) {
	if data, err = io.ReadAll(io.LimitReader(in, maxEventBytes)); err != nil {
		return nil, head, err
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return data, head, err
	}
	if head.SessionID == "" || head.Name == "" || head.Cwd == "" {
		return data, head, errors.New("it names no session, event or directory")
	}
	return data, head, nil
}

// Session is the file that names the folder of a session and its directory; empty for a
// session whose id cannot be part of a file's name. All is the folder of all recordings.
func Session(all, agent, id string) string {
	for _, c := range id {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return ""
		}
	}
	if len(id) > 100 {
		return ""
	}
	return all + "/" + "sessions" + "/" + agent + "_" + id
}

// EventName makes the name of an event's file. The names sort by time.
func EventName(agent string) string {
	return fmt.Sprintf("%020d-%d-%s%s", time.Now().UnixNano(), os.Getpid(), agent, EventEnding)
}

// Program identifies the running program by its file.
func Program() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	st, _ := info.Sys().(*syscall.Stat_t)
	if st == nil {
		return ""
	}
	return fmt.Sprintf("%d:%d %d %d", st.Dev, st.Ino, st.Size, info.ModTime().UnixNano())
}

// Owned checks that a socket is this user's alone.
func Owned(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode().Type() != os.ModeSocket || info.Mode().Perm()&0o077 != 0 || int(st.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a socket of this user alone", path)
	}
	return nil
}

// Main runs a whole hook, anamnesis hook AGENT FOLDER with the folder of all recordings, if
// the session's directory has a running recorder. Otherwise it restores standard input and
// returns, so that the program runs the hook; if a recorder may have written the event, it
// starts the program anew with the event's name.
func Main(args []string) {
	if len(args) != 4 || args[1] != "hook" || !strings.HasPrefix(args[3], "/") || strings.HasSuffix(args[3], EventEnding) {
		return
	}
	deadline := time.Now().Add(Wait)
	data, head, err := Read(os.Stdin)
	if err == nil && head.Name != ContextCut {
		if event, ends := hand(args[2], args[3], head, data, deadline); ends {
			os.Exit(0)
		} else if event != "" {
			putBack(data)
			if self, err := os.Executable(); err == nil {
				_ = syscall.Exec(self, []string{args[0], "hook", args[2], event}, os.Environ())
			}
			os.Exit(0)
		}
	}
	putBack(data)
}

// hand sends an event to the recorder and answers the agent. If it cannot, it returns the
// event's file if the recorder may have written it.
func hand(agent, all string, head Head, data []byte, deadline time.Time) (event string, ends bool) {
	known := Session(all, agent, head.SessionID)
	text, err := os.ReadFile(known)
	if known == "" || err != nil {
		return "", false
	}
	folder, dir, _ := strings.Cut(string(text), "\n")
	for _, off := range []string{dir + "/" + OffFile, all + "/" + PausedFile} {
		if _, err := os.Lstat(off); err == nil {
			return "", true
		}
	}
	if _, err := os.Lstat(dir); err != nil {
		return "", false // it may have been moved
	}
	if Owned(folder+"/"+SocketFile) != nil || os.Chdir(folder) != nil {
		return "", false
	}
	// A relative name, since an address holds few bytes.
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return "", false
	}
	syscall.CloseOnExec(fd)
	limit := func(d time.Duration) {
		left := syscall.NsecToTimeval(max(d, time.Millisecond).Nanoseconds())
		for _, way := range []int{syscall.SO_RCVTIMEO, syscall.SO_SNDTIMEO} {
			_ = syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, way, &left) // without it the agent ends a hook that hangs
		}
	}
	limit(keepWait)
	if syscall.Connect(fd, &syscall.SockaddrUnix{Name: SocketFile}) != nil {
		return "", false
	}
	name := EventName(agent)
	event = folder + "/" + name
	conn := os.NewFile(uintptr(fd), SocketFile)
	if json.NewEncoder(conn).Encode(Request{Verb: EventVerb, Program: Program(), Event: name, Data: data, Environ: os.Environ()}) != nil {
		return event, false
	}
	var kept, reply Reply
	replies := json.NewDecoder(io.LimitReader(conn, maxReplyBytes))
	if replies.Decode(&kept) != nil || kept.Ends || !kept.OK { // it hangs, was killed, ends, or could not write
		return event, false
	}
	limit(time.Until(deadline))
	err = replies.Decode(&reply)
	if err != nil && time.Now().Before(deadline) { // it was killed
		return event, false
	}
	os.Stdout.Write(reply.Reply)
	return event, true
}

// putBack makes what was read the standard input again.
func putBack(data []byte) {
	f, err := os.CreateTemp("", "anamnesis-hook")
	if err != nil {
		return
	}
	os.Remove(f.Name())
	if _, err := f.Write(data); err != nil {
		return
	}
	if _, err := f.Seek(0, io.SeekStart); err == nil {
		_ = dup2(int(f.Fd()), 0)
	}
}
