//go:build unix

// Package shell runs the commands that the user types after "!".
package shell

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Run runs a line in a directory with the user's shell and returns its output. If ctx ends,
// it kills the shell and every process of its group.
func Run(ctx context.Context, dir, line string) (string, error) {
	c := exec.CommandContext(ctx, cmp.Or(os.Getenv("SHELL"), "/bin/sh"), "-c", line)
	c.Dir, c.SysProcAttr, c.WaitDelay = dir, &syscall.SysProcAttr{Setpgid: true}, time.Second
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	out, err := c.CombinedOutput()
	return string(out), err
}
