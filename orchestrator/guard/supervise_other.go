//go:build !linux

package guard

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"anamnesis/opstream/op"
)

// Missing lists what this platform lacks, one sentence each.
func Missing() []string {
	return []string{
		"commands have no supervisor: a process that leaves its process group (setsid, daemon) survives its command",
		"commands outlive this program when it is killed",
	}
}

// SuperviseMain only records the call here: there is no supervisor on this platform.
func SuperviseMain() { supervised.Store(true) }

// EndLeftover does nothing on this platform: processes cannot be identified across a crash.
func EndLeftover(op.ToolStarted) error { return nil }

// Run runs a command and ends its process group when it is over; Missing lists what Linux has
// beyond that. Errors and results are as on Linux.
func Run(ctx context.Context, c Command) (Outcome, error) {
	if c.Stdin != nil {
		defer c.Stdin.Close()
	}
	if err := c.check(); err != nil {
		return Outcome{}, err
	}
	if c.Started != nil {
		if err := c.Started(op.ToolStarted{Call: c.Call}); err != nil {
			return Outcome{}, fmt.Errorf("record start of %s: %w", c.Path, err)
		}
	}
	limit, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := &exec.Cmd{
		Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	var mu sync.Mutex
	writer := func(stream Stream) streamWriter {
		return func(p []byte) {
			mu.Lock()
			defer mu.Unlock()
			if c.Output != nil {
				c.Output(stream, p)
			}
		}
	}
	cmd.Stdout, cmd.Stderr = writer(Stdout), writer(Stderr)
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	// A process that left the group may hold the outputs open; Run does not wait for it.
	cmd.WaitDelay = drainTime
	if err := cmd.Start(); err != nil {
		return Outcome{}, fmt.Errorf("run command: %w", &StartError{err.Error()})
	}
	group := -cmd.Process.Pid
	stop := context.AfterFunc(limit, func() {
		_ = syscall.Kill(group, syscall.SIGTERM)
		time.Sleep(graceTime)
		_ = syscall.Kill(group, syscall.SIGKILL)
	})
	err := cmd.Wait()
	stop()
	_ = syscall.Kill(group, syscall.SIGKILL)
	o := Outcome{
		TimedOut: errors.Is(limit.Err(), context.DeadlineExceeded) && ctx.Err() == nil,
		Canceled: ctx.Err() != nil,
	}
	if err != nil && !errors.As(err, new(*exec.ExitError)) && !errors.Is(err, exec.ErrWaitDelay) {
		return o, fmt.Errorf("run command: %w", err)
	}
	o.Exit = cmd.ProcessState.ExitCode()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		o.Exit = 128 + int(ws.Signal())
	}
	if o.Canceled {
		return o, fmt.Errorf("run command: %w", context.Cause(ctx))
	}
	return o, nil
}

// streamWriter passes an output on.
type streamWriter func(p []byte)

func (w streamWriter) Write(p []byte) (int, error) { w(p); return len(p), nil }
