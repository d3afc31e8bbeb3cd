// Package client sends a hook's event to a running recorder. It imports little, so that it is
// initialised long before the rest of the program, see cmd/internal/hookmain: encoding/json, fmt
// and strings wait for many other packages.
package client

import (
	"errors"
	"os"
	"strconv"
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

// EventVerb is the verb of a request that hands over an event.
const EventVerb = "event"

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
	data, _ := readAll(0, MaxEventBytes) // what is cut is no event
	if session, cwd, name := head(data); session != "" && cwd != "" && name != "" && name != ContextCut {
		event, ends := hand(args[2], args[3], session, data, deadline)
		if ends {
			os.Exit(0)
		}
		if event != "" {
			again = append(again, event)
		}
	}
	var p [2]int
	if self, err := os.Executable(); err == nil && syscall.Pipe(p[:]) == nil {
		syscall.CloseOnExec(p[1])
		files := []uintptr{uintptr(p[0]), 1, 2}
		if _, err := syscall.ForkExec(self, again, &syscall.ProcAttr{Env: os.Environ(), Files: files}); err == nil {
			syscall.Close(p[0])
			writeAll(p[1], data)
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
	if len(args) > 1 && hasEnding(args[1], EventEnding) {
		event = args[1]
	}
	return until, event
}

// hand sends an event to the recorder and answers the agent. If it cannot, it returns the
// event's file if the recorder may have written it.
func hand(agent, all, session string, data []byte, deadline time.Time) (event string, ends bool) {
	known := Session(all, agent, session)
	folder, dir := "", ""
	if text, err := readFile(known); err == nil {
		folder, dir = cut(string(text), '\n')
	}
	if dir == "" {
		return "", false
	}
	var st syscall.Stat_t
	for _, off := range []string{dir + "/" + OffFile, all + "/" + PausedFile} {
		if syscall.Lstat(off, &st) == nil {
			return "", true
		}
	}
	if syscall.Lstat(dir, &st) != nil {
		return "", false // it may have been moved
	}
	if Owned(folder+"/"+SocketFile) != nil || syscall.Chdir(folder) != nil {
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
	limit(max(time.Until(deadline)/2, minKeepWait))
	if syscall.Connect(fd, &syscall.SockaddrUnix{Name: SocketFile}) != nil {
		return "", false
	}
	name := EventName(agent)
	event = folder + "/" + name
	if !writeAll(fd, request(name, data)) {
		return event, false
	}
	replies := replies{fd: fd}
	if kept, ok := replies.next(); !ok || len(kept) > 0 { // it hangs, was killed, ends, or could not write
		return event, false
	}
	limit(time.Until(deadline))
	reply, ok := replies.next()
	if !ok && time.Now().Before(deadline) { // it was killed
		return event, false
	}
	writeAll(1, reply)
	return event, true
}
