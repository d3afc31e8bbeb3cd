package taskdir

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/state"
)

// A live task listens on a Unix socket in its folder. One connection carries one request and
// one reply, each a line of JSON.

// Command is a request to a live task.
type Command struct {
	Verb string `json:"verb"` // say | jump | answer | stop
	Text string `json:"text,omitempty"`
	// JumpRequested is for the verb jump.
	op.JumpRequested
	// Answer is for the verb answer.
	Answer *op.QuestionAnswered `json:"answer,omitempty"`
	// From says where the user gives the command.
	From string `json:"from,omitempty"`
	// Sent is set for a command that came through a bucket.
	Sent *op.Sent `json:"-"`
}

type commandReply struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
	Why   string `json:"why,omitempty"` // a key of whys, where the caller branches
}

const (
	maxCommandBytes = 1 << 20
	commandTimeout  = 10 * time.Second
)

// RemoteError is a live task's reply to a command it refused.
type RemoteError struct {
	Text string
	why  error // of whys, or nil
}

func (e *RemoteError) Error() string { return e.Text }

func (e *RemoteError) Unwrap() error { return e.why }

// whys are the errors that keep their meaning over the socket.
func whys() map[string]error {
	return map[string]error{"no_step": state.ErrNoStep, "pending": ErrPending, "answered": ErrAnswered,
		"no_question": ErrNoQuestion}
}

// Serve passes the commands that arrive at a socket to obey, until stop is called; stop returns when the
// last is answered.
func Serve(path string, obey func(Command) error) (stop func(), err error) {
	l, err := Listen(path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	var wg sync.WaitGroup
	var open sync.Map // connections whose command has not arrived yet
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed by stop; the task also runs without a socket
			}
			open.Store(c, true)
			wg.Go(func() {
				defer open.Delete(c)
				serveOne(c, obey)
			})
		}
	})
	return func() {
		l.Close()
		open.Range(func(c, _ any) bool {
			_ = c.(net.Conn).SetReadDeadline(time.Now()) // do not wait for clients that sent nothing yet
			return true
		})
		wg.Wait()
		os.Remove(path)
	}, nil
}

func serveOne(c net.Conn, obey func(Command) error) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(commandTimeout)) // a connection without deadlines also works
	var cmd Command
	reply := commandReply{OK: true}
	line, err := bufio.NewReader(io.LimitReader(c, maxCommandBytes)).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &cmd)
	}
	if err == nil {
		err = obey(cmd)
	}
	if err != nil {
		reply = commandReply{Error: err.Error()}
		for why, target := range whys() {
			if errors.Is(err, target) {
				reply.Why = why
			}
		}
	}
	_ = json.NewEncoder(c).Encode(reply) // the caller may have gone; the command is recorded
}

// Send sends a command to a live task. ErrNotLive means that none is running, *RemoteError is
// the task's refusal.
func Send(ctx context.Context, h Home, task string, cmd Command) error {
	var reply commandReply
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	err := Exchange(ctx, h.Socket(task), cmd, &reply)
	if errors.Is(err, ErrNotLive) {
		return fmt.Errorf("%w: %s", ErrNotLive, task)
	}
	if err != nil { // a blocked task takes the command when it continues
		err = fmt.Errorf("task %s did not answer; it may have taken it, or take it yet (%w)", task, err)
		return remedy.With(err, remedy.ShowTimeline, task)
	}
	if !reply.OK {
		return &RemoteError{Text: reply.Error, why: whys()[reply.Why]}
	}
	return nil
}

// Exchange sends a request to a socket and reads the reply, each a line of JSON. ErrNotLive
// means that no process listens. It returns when ctx ends.
func Exchange(ctx context.Context, socket string, request, reply any) error {
	c, err := dial(ctx, socket)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotLive, err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	if err := json.NewEncoder(c).Encode(request); err != nil {
		return err
	}
	return json.NewDecoder(io.LimitReader(c, maxCommandBytes)).Decode(reply)
}

// Listen and dial use a descriptor of the socket's folder, since the path may be longer than
// the 107 bytes a Unix address holds.
func Listen(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err // this process has the task's lock: a socket here is a dead process's
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: viaFD(dir, path), Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	return l, os.Chmod(path, 0o600)
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var d net.Dialer
	return d.DialContext(ctx, "unix", viaFD(dir, path))
}

func viaFD(dir *os.File, path string) string {
	if len(path) < 100 {
		return path
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
}
