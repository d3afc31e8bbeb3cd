// Package client holds what hooks and recorders send each other, and sends a hook's event to a
// running recorder. It imports little, so that it is initialised before the rest of the program,
// see cmd/internal/hookmain: package net waits for nearly all other packages.
package client

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Wait is how long a hook's process lets an agent wait. What takes longer continues without the
// agent. The agent's limit is 2 s; the rest is for the wrapper and the end of the processes, where
// many hooks begin at once.
const Wait = 1500 * time.Millisecond

// minKeepWait is how long a hook waits at least for the recorder to confirm that the event is on
// disk, usually half of the time that is left. After that the hook writes the event itself.
const minKeepWait = 200 * time.Millisecond

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

// MaxEventBytes is how much of an event is read.
const MaxEventBytes = 32 << 20

const maxReplyBytes = 1 << 20

// The verbs of requests, beside taskdir.CloseVerb.
const (
	EventVerb = "event" // hands over an event
	StopVerb  = "stop"  // ends the recorder
)

// Request is a request to a recorder, a line of JSON.
type Request struct {
	Verb    string `json:"verb"`
	Program string `json:"program"` // see Program
	Event   string `json:"event"`   // the name of the hook's own
	// Data is the event, which the recorder redacts and writes to the file of its name; empty:
	// that file exists.
	Data    json.RawMessage `json:"data,omitempty"`
	Environ []string        `json:"environ"` // the hook's: its secrets are redacted
}

// Reply is a recorder's answer, a line of JSON. To a request with an event in it there
// are two: the first, when the event is on disk, and the second, when it is recorded.
type Reply struct {
	OK    bool   `json:"ok"`
	Reply []byte `json:"reply"` // for the agent
	Ends  bool   `json:"ends"`  // the recorder is of another program, and ends
}

// Head is what a hook reads of an event.
type Head struct {
	SessionID string `json:"session_id"`
	Cwd       string `json:"cwd"`
	Name      string `json:"hook_event_name"`
}

// Read reads an event from a hook's standard input.
func Read(in io.Reader) (data []byte, head Head, err error) {
	if data, err = io.ReadAll(io.LimitReader(in, MaxEventBytes)); err != nil {
		return nil, head, err
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return data, Head{}, err
	}
	if head.SessionID == "" || head.Name == "" || head.Cwd == "" {
		return data, head, errors.New("it names no session, event or directory")
	}
	return data, head, nil
}

// ContextCut is the event by which the plugin of opencode asks which calls a jump has
// left. It is answered and not recorded.
const ContextCut = "ContextCut"

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
	now := strconv.FormatInt(time.Now().UnixNano(), 10)
	for len(now) < 20 {
		now = "0" + now
	}
	return now + "-" + strconv.Itoa(os.Getpid()) + "-" + agent + EventEnding
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
	return strconv.FormatUint(uint64(st.Dev), 10) + ":" + strconv.FormatUint(st.Ino, 10) + " " +
		strconv.FormatInt(st.Size, 10) + " " + strconv.FormatInt(info.ModTime().UnixNano(), 10)
}

// Owned checks that a socket is this user's alone.
func Owned(path string) error {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFSOCK || st.Mode&0o077 != 0 || int(st.Uid) != os.Getuid() {
		return errors.New(path + " is not a socket of this user alone")
	}
	return nil
}

// Main runs a whole hook, anamnesis hook AGENT FOLDER with the folder of all recordings, if
// the session's directory has a running recorder. Otherwise it starts the program anew, which
// runs the hook: with the time until which the agent waits, and with the event's name if a
// recorder may have written the event. An agent's hook waits for what this process has left open, not for the process that it starts.
func Main(args []string) {
	if len(args) != 4 || args[1] != "hook" || args[3] == "" || args[3][0] != '/' {
		return
	}
	deadline := started().Add(Wait)
	again := []string{args[0], args[1], args[2], strconv.FormatInt(deadline.UnixNano(), 10)}
	data, head, err := Read(os.Stdin) // the program that is started anew reports an error
	if err == nil && head.Name != ContextCut {
		event, ends := hand(args[2], args[3], head.SessionID, data, deadline)
		if ends {
			os.Exit(0)
		}
		if event != "" {
			again = append(again, event)
		}
	}
	if self, err := os.Executable(); err == nil {
		if from, to, err := os.Pipe(); err == nil {
			if _, err := os.StartProcess(self, again, &os.ProcAttr{Files: []*os.File{from, os.Stdout, os.Stderr}}); err == nil {
				from.Close()
				_, _ = to.Write(data) // it reports what it did not get
			}
		}
	}
	os.Exit(0)
}

// Rest reads what Main adds to the arguments of the program that it starts: until when the agent
// waits, and the event's file.
func Rest(args []string) (until time.Time, event string) {
	until = time.Now().Add(Wait)
	if len(args) > 0 {
		if ns, err := strconv.ParseInt(args[0], 10, 64); err == nil {
			until = time.Unix(0, ns)
		}
	}
	if len(args) > 1 && strings.HasSuffix(args[1], EventEnding) {
		event = args[1]
	}
	return until, event
}

// hand sends an event to the recorder and answers the agent. If it cannot, it returns the
// event's file if the recorder may have written it.
func hand(agent, all, session string, data []byte, deadline time.Time) (event string, ends bool) {
	text, err := os.ReadFile(Session(all, agent, session))
	folder, dir, _ := strings.Cut(string(text), "\n")
	if err != nil || dir == "" {
		return "", false
	}
	for _, off := range []string{dir + "/" + OffFile, all + "/" + PausedFile} {
		if _, err := os.Lstat(off); err == nil {
			return "", true
		}
	}
	if _, err := os.Lstat(dir); err != nil {
		return "", false // it may have been moved
	}
	// A relative name, since an address holds few bytes.
	if Owned(folder+"/"+SocketFile) != nil || os.Chdir(folder) != nil {
		return "", false
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return "", false
	}
	syscall.CloseOnExec(fd)
	c := os.NewFile(uintptr(fd), SocketFile)
	limit := func(d time.Duration) {
		left := syscall.NsecToTimeval(max(d, time.Millisecond).Nanoseconds())
		for _, way := range []int{syscall.SO_RCVTIMEO, syscall.SO_SNDTIMEO} {
			_ = syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, way, &left) // without it the agent ends a hook that hangs
		}
	}
	limit(max(time.Until(deadline)/2, minKeepWait))
	if syscall.Connect(fd, &syscall.SockaddrUnix{Name: SocketFile}) != nil {
		return "", false
	}
	name := EventName(agent)
	event = folder + "/" + name
	line, err := json.Marshal(Request{Verb: EventVerb, Program: Program(), Event: name, Environ: os.Environ()})
	if err != nil {
		return "", false
	}
	// The event goes as it is: Marshal would take the white space out of it.
	line = append(append(append(line[:len(line)-1], `,"data":`...), data...), "}\n"...)
	if _, err := c.Write(line); err != nil {
		return event, false
	}
	replies := json.NewDecoder(io.LimitReader(c, maxReplyBytes))
	var kept, rep Reply
	if err := replies.Decode(&kept); err != nil || !kept.OK || kept.Ends || len(kept.Reply) > 0 { // it hangs, was killed, ends, or could not write
		return event, false
	}
	limit(time.Until(deadline))
	err = replies.Decode(&rep)
	if (err != nil || !rep.OK || rep.Ends) && time.Now().Before(deadline) { // it was killed
		return event, false
	}
	_, _ = os.Stdout.Write(rep.Reply) // an agent that has left needs none
	return event, true
}

// started returns when this process began. Where many hooks begin at once, one may wait long for a
// processor, and its agent waits with it.
func started() time.Time {
	stat, _ := os.ReadFile("/proc/self/stat") // on macOS there is none
	uptime, _ := os.ReadFile("/proc/uptime")
	return time.Now().Add(-min(age(string(stat), string(uptime)), Wait))
}

// age returns how long ago a process began, from its /proc/PID/stat and /proc/uptime; 0 if they do
// not say. Linux counts both in hundredths of a second.
func age(stat, uptime string) time.Duration {
	// The program's name may hold anything, and is in parentheses.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	up, _, _ := strings.Cut(uptime, " ")
	to, err := strconv.Atoi(strings.Replace(up, ".", "", 1))
	if len(fields) < 20 || err != nil {
		return 0
	}
	from, err := strconv.Atoi(fields[19])
	if err != nil || to < from {
		return 0
	}
	return time.Duration(to-from) * 10 * time.Millisecond
}
