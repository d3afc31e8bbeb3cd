package beside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

// A recorder is a process that records the sessions of one directory. Hooks start it:
// the one that gets the recorder's lock hands the locked file to the new process, which
// holds it to its end. It listens on a socket; a connection carries one request and one
// reply, each a line of JSON.

const (
	// IdleTime is how long a recorder waits for the next request.
	IdleTime = 10 * time.Minute
	// stopTime is how long StopRecorders waits for a recorder to end.
	stopTime = time.Minute
	// requestTime is how long a connection may take to send its request.
	requestTime = 5 * time.Second
	// maxRequestBytes is how much of a request is read.
	maxRequestBytes = 8 << 20
)

// Files in the folder of a recorded directory, beside the waiting events.
const (
	LockFile    = "recorder.lock" // locked by the recorder to its end
	SocketFile  = "recorder.sock"
	eventEnding = ".event"
)

// The verbs of requests, beside taskdir.CloseVerb.
const (
	eventVerb = "event" // has an event recorded
	stopVerb  = "stop"  // ends the recorder
)

// request is a request to a recorder, a line of JSON.
type request struct {
	Verb    string   `json:"verb"`
	Program string   `json:"program"` // see Program
	Event   string   `json:"event"`   // the name of the hook's own
	Environ []string `json:"environ"` // the hook's: its secrets are redacted
}

// reply is a recorder's answer, a line of JSON.
type reply struct {
	OK    bool   `json:"ok"`    // read by who asks that the task be closed; see taskdir
	Reply []byte `json:"reply"` // for the agent
	Ends  bool   `json:"ends"`  // the recorder is of another program, and ends
}

// errNoRecorder: no recorder runs, and none can be started.
var errNoRecorder = errors.New("no recorder")

// Recorders starts and reaches recorders.
type Recorders struct {
	// Program identifies the running program, as the function Program does. A recorder of another ends.
	Program string
	// Start starts a directory's recorder in a process of its own, which has the file open until it ends.
	Start func(dir string, lock *os.File) error
	// Wait is how long a hook waits for the reply; zero means as long as the agent does.
	Wait time.Duration
}

// ask sends an event to the directory's recorder and returns the reply. If ctx ends first, or has
// ended, the recorder still records the event: it is started in any case.
func (r *Recorders) ask(ctx context.Context, h taskdir.Home, dir, event string) ([]byte, error) {
	socket := filepath.Join(folder(h, dir), SocketFile)
	for {
		var rep reply
		err := owned(socket)
		if err == nil {
			req := request{Verb: eventVerb, Program: r.Program, Event: event, Environ: os.Environ()}
			err = taskdir.Exchange(ctx, socket, req, &rep)
		}
		if err == nil && !rep.Ends {
			return rep.Reply, nil
		}
		if err := r.start(h, dir); err != nil {
			return nil, errors.Join(errNoRecorder, err)
		}
		if model.Wait(ctx, lockPause) != nil {
			return nil, nil
		}
	}
}

// start starts a recorder unless one runs or is starting.
func (r *Recorders) start(h taskdir.Home, dir string) error {
	lock, err := durable.TryLock(filepath.Join(folder(h, dir), LockFile))
	if errors.Is(err, durable.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	return r.Start(dir, lock)
}

// recorder serves one directory.
type recorder struct {
	place
	program string
	log     func(error)
	busy    sync.WaitGroup
	touched chan struct{} // a request was answered
	end     context.CancelFunc
}

// firstRequest is how long a recorder waits at least for the hook that started it.
const firstRequest = 5 * time.Second

// Record runs a recorder: it serves hooks until none has asked for idle, a request stops it,
// or a hook of another program asks. The caller holds the recorder's lock.
func Record(ctx context.Context, svc *session.Service, dir, program string, idle time.Duration, log func(error)) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	socket := filepath.Join(folder(svc.Home, dir), SocketFile)
	r := &recorder{
		place:   place{svc: svc, dir: dir, socket: socket, unsure: true},
		program: program, log: log, touched: make(chan struct{}, 1), end: end,
	}
	lock := filepath.Join(folder(svc.Home, dir), LockFile)
	if err := os.WriteFile(lock, []byte(program), 0o600); err != nil { // for otherRecorders
		return err
	}
	l, err := taskdir.Listen(socket)
	if err != nil {
		return err
	}
	own, err := os.Lstat(socket)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	r.reader.From, r.reader.Waits = svc.Reader(), r.eventWaits
	r.busy.Go(func() { r.accept(l) })
	wait := max(idle, firstRequest)
	for waiting := true; waiting; {
		timer := time.NewTimer(wait)
		select {
		case <-r.touched:
			wait = idle
		case <-timer.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
		timer.Stop()
	}
	if now, err := os.Lstat(socket); err == nil && os.SameFile(own, now) { // else another recorder has the folder
		os.Remove(socket)
	}
	l.Close()
	r.busy.Wait()
	err = r.record(context.WithoutCancel(ctx), "", nil) // events of hooks that were killed before they asked
	return session.JoinClose(err, r.close())
}

// accept answers connections until the socket is closed.
func (r *recorder) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		r.busy.Go(func() {
			defer c.Close()
			_ = c.SetReadDeadline(time.Now().Add(requestTime))
			var req request
			if err := json.NewDecoder(io.LimitReader(c, maxRequestBytes)).Decode(&req); err != nil {
				return // the client has closed it
			}
			r.answer(req, json.NewEncoder(c).Encode)
			select {
			case r.touched <- struct{}{}:
			default:
			}
		})
	}
}

// answer serves a request. send fails where the client has left.
func (r *recorder) answer(req request, send func(any) error) {
	rep, sent := reply{}, false
	defer func() {
		if p := recover(); p != nil {
			r.log(fmt.Errorf("panic: %v", p))
			r.end() // the state in memory may be inconsistent
		}
		if !sent {
			_ = send(rep)
		}
	}()
	var err error
	switch {
	case req.Verb == stopVerb, req.Verb == eventVerb && req.Program != r.program:
		rep.Ends = true
		r.end()
		r.reader.End()
	case req.Verb == taskdir.CloseVerb:
		r.mu.Lock()
		err = r.closeTask()
		r.mu.Unlock()
	case req.Verb == eventVerb:
		if !endsSession(filepath.Join(folder(r.svc.Home, r.dir), req.Event)) {
			r.reader.End()
		}
		if err = r.learn(req.Environ); err == nil {
			err = r.record(context.Background(), req.Event, func(text []byte) error {
				sent = true
				return send(reply{OK: true, Reply: text})
			})
		}
	default:
		err = fmt.Errorf("unknown request %q", req.Verb)
	}
	if err != nil {
		r.log(err)
	}
	rep.OK = err == nil
}

// recording lists the folders of directories that have a running recorder.
func recording(h taskdir.Home) (folders []string, err error) {
	entries, err := os.ReadDir(all(h))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		dir := filepath.Join(all(h), e.Name())
		if _, err := os.Lstat(filepath.Join(dir, LockFile)); err != nil {
			continue
		}
		f, err := durable.TryLock(filepath.Join(dir, LockFile))
		if errors.Is(err, durable.ErrLocked) {
			folders = append(folders, dir)
			continue
		}
		if err != nil {
			return nil, err
		}
		f.Close()
	}
	return folders, err
}

// otherRecorders counts the recorders that are not of a program; see Program.
func otherRecorders(h taskdir.Home, program string) (n int) {
	folders, _ := recording(h) // unreadable: doctor reports the folder
	for _, dir := range folders {
		if of, err := os.ReadFile(filepath.Join(dir, LockFile)); err == nil && string(of) != program {
			n++
		}
	}
	return n
}

// StopRecorders ends the recorders of all directories and returns how many there were. They
// record the waiting events first.
func StopRecorders(ctx context.Context, h taskdir.Home) (n int, err error) {
	folders, err := recording(h)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	for _, dir := range folders {
		for {
			var rep reply
			// It fails while the recorder starts or ends. The lock shows whether it ended.
			_ = taskdir.Exchange(ctx, filepath.Join(dir, SocketFile), request{Verb: stopVerb}, &rep)
			f, err := durable.TryLock(filepath.Join(dir, LockFile))
			if err == nil {
				f.Close()
				n++
				break
			}
			if !errors.Is(err, durable.ErrLocked) {
				return n, err
			}
			if ctx.Err() != nil {
				return n, fmt.Errorf("a recorder is still at work: %s", dir)
			}
			time.Sleep(lockPause)
		}
	}
	return n, nil
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
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d %d %d", st.Dev, st.Ino, st.Size, info.ModTime().UnixNano())
}

// owned checks that a socket is this user's alone.
func owned(path string) error {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFSOCK || st.Mode&0o077 != 0 || int(st.Uid) != os.Getuid() {
		return errors.New(path + " is not a socket of this user alone")
	}
	return nil
}
