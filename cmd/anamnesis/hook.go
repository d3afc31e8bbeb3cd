//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/beside/client"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
)

// hookWork is how long a hook may record if it cannot reach a recorder.
const hookWork = 10 * time.Minute

// hookCommand is what the wrapper in an agent's configuration runs. It never fails towards the
// agent: standard error is empty, and standard output is empty or one reply.
func (a *app) hookCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "hook AGENT",
		Short:  "Record an event of another agent, given on standard input",
		Hidden: true,
		Args:   cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.hook(cmd.Context(), args)
			return nil
		},
	}
}

func (a *app) hook(ctx context.Context, args []string) {
	if len(args) == 0 || !beside.Recorded(sessions.Agent(args[0])) {
		return
	}
	agent := sessions.Agent(args[0])
	until, event := client.Rest(args[1:])
	svc, err := a.service()
	if err != nil {
		return // the error cannot be shown here; doctor finds it
	}
	// The wrapper waits for the end of standard output, not of this process.
	var once sync.Once
	answer := func(reply []byte) error {
		err := errors.New("the reply came after the agent had stopped waiting")
		once.Do(func() {
			_, err = a.stdout.Write(reply)
			if f, ok := a.stdout.(*os.File); ok {
				f.Close()
			}
		})
		return err
	}
	timer := time.AfterFunc(time.Until(until), func() { answer(nil) })
	defer timer.Stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookWork)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			beside.LogError(svc.Home, string(agent), fmt.Errorf("panic: %v", p))
		}
		answer(nil)
	}()
	recorders := a.recorders(svc)
	recorders.Until = until
	if err := beside.Hook(ctx, svc, agent, a.stdin, event, recorders, answer); err != nil {
		beside.LogError(svc.Home, string(agent), err)
	}
}

// recorders returns the recorders, which this program starts.
func (a *app) recorders(svc *session.Service) *beside.Recorders {
	return &beside.Recorders{Program: client.Program(), Start: func(dir string, lock *os.File) error { return a.startRecorder(svc, dir, lock) }}
}

// recorderVerb is the hidden command that is a recorder.
const recorderVerb = "recorder"

// lockFD is the descriptor of the lock that a recorder inherits.
const lockFD = 3

// startRecorder starts the recorder of a directory in its own session. It inherits no files of
// this process but the lock, and has no output.
func (a *app) startRecorder(svc *session.Service, dir string, lock *os.File) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if fds, err := os.ReadDir("/dev/fd"); err == nil {
		for _, fd := range fds { // of the agent and its shell
			if n, err := strconv.Atoi(fd.Name()); err == nil && n > 2 {
				unix.CloseOnExec(n)
			}
		}
	}
	cmd := exec.Command(program, recorderVerb, dir)
	cmd.Dir, cmd.ExtraFiles = "/", []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = os.Environ()
	if a.getenv("ANAMNESIS_HOME") != "" {
		cmd.Env = append(cmd.Env, "ANAMNESIS_HOME="+svc.Home.State) // it may be relative
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// recorderMemory is the size of a recorder's heap above which the collector works harder. It
// must hold what a scan of 65,536 directories keeps; otherwise the collector runs all the time.
const recorderMemory = 72 << 20

func (a *app) recorderCommand() *cobra.Command {
	return &cobra.Command{
		Use:    recorderVerb + " DIR",
		Short:  "Record the sessions of other agents in a directory; started by hooks",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: a.withService(func(cmd *cobra.Command, args []string, svc *session.Service) error {
			// If a hook did not start it, the descriptor is another file or none.
			if err := unix.Flock(lockFD, unix.LOCK_EX|unix.LOCK_NB); err != nil {
				return errors.New("a recorder is started by hooks")
			}
			unix.CloseOnExec(lockFD)
			debug.SetMemoryLimit(recorderMemory)
			log := func(err error) { beside.LogError(svc.Home, recorderVerb, err) }
			err := beside.Record(cmd.Context(), svc, args[0], client.Program(), beside.IdleTime, log)
			if err != nil {
				log(err)
			}
			return err
		}),
	}
}
