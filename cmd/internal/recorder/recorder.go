//go:build unix

// Package recorder answers hooks of other agents, and is the recorder process that hooks start.
package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
)

// Verb is the hidden command that calls [Run].
const Verb = "recorder"

// hookWork is how long a hook may record if it cannot reach a recorder.
const hookWork = 10 * time.Minute

// Hook records the event of another agent that in holds, and writes at most one reply to out.
// Errors go to the log, since an agent must see none.
func Hook(ctx context.Context, svc *session.Service, agent sessions.Agent, in io.Reader, out io.Writer) {
	// The wrapper waits for the end of standard output, not of this process.
	var once sync.Once
	answer := func(reply []byte) error {
		err := errors.New("the reply came after the agent had stopped waiting")
		once.Do(func() {
			_, err = out.Write(reply)
			if f, ok := out.(*os.File); ok {
				f.Close()
			}
		})
		return err
	}
	timer := time.AfterFunc(beside.Wait, func() { answer(nil) })
	defer timer.Stop()
	// A signal that ends ctx, such as Ctrl-C in the agent's terminal, must not cut off the recording.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookWork)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			beside.LogError(svc.Home, string(agent), fmt.Errorf("panic: %v", p))
		}
		answer(nil)
	}()
	if err := beside.Hook(ctx, svc, agent, in, Recorders(svc), answer); err != nil {
		beside.LogError(svc.Home, string(agent), err)
	}
}

func Recorders(svc *session.Service) *beside.Recorders {
	return &beside.Recorders{Program: beside.Program(), Start: func(dir string, lock *os.File) error {
		return start(svc, dir, lock)
	}}
}

// lockFD is the descriptor of the lock that a recorder inherits.
const lockFD = 3

// start starts the recorder of a directory in its own session. It inherits no files of
// this process but the lock, and has no output.
func start(svc *session.Service, dir string, lock *os.File) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if fds, err := os.ReadDir("/dev/fd"); err == nil {
		// A recorder that held the pipes of the agent and its shell open would keep the agent waiting for their end.
		for _, fd := range fds {
			if n, err := strconv.Atoi(fd.Name()); err == nil && n > 2 {
				unix.CloseOnExec(n)
			}
		}
	}
	cmd := exec.Command(program, Verb, dir)
	cmd.Dir, cmd.ExtraFiles = "/", []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = os.Environ()
	if os.Getenv("ANAMNESIS_HOME") != "" {
		cmd.Env = append(cmd.Env, "ANAMNESIS_HOME="+svc.Home.State) // it may be relative
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// memoryLimit is the size of a recorder's heap above which the collector works harder. It
// must hold what a scan of 65,536 directories keeps; otherwise the collector runs all the time.
const memoryLimit = 72 << 20

// Run records the sessions of other agents in a directory until none has used it for a while.
func Run(ctx context.Context, svc *session.Service, dir string) error {
	// If a hook did not start this process, the descriptor does not exist, or belongs to a file that the process
	// opened itself and that is closed on exec.
	lock := os.NewFile(lockFD, beside.LockFile)
	flags, _ := unix.FcntlInt(lockFD, unix.F_GETFD, 0)
	if flags&unix.FD_CLOEXEC != 0 || durable.TryLockOpen(lock) != nil {
		return errors.New("a recorder is started by hooks")
	}
	defer lock.Close()
	unix.CloseOnExec(lockFD)
	debug.SetMemoryLimit(memoryLimit)
	log := func(err error) { beside.LogError(svc.Home, Verb, err) }
	err := beside.Record(ctx, svc, dir, beside.Program(), beside.IdleTime, log)
	if err != nil {
		log(err)
	}
	return err
}
