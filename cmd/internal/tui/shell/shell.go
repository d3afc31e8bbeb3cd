//go:build unix

// Package shell runs the commands that the user types after "!".
package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// endBytes is how much of the beginning of an output, and of its end, Run returns.
const endBytes = 512 << 10

// Run runs a line in a directory with the user's shell and returns its output. wrote is called
// with each piece of the output as it is written. If ctx ends, Run kills the shell and every
// process of its group.
func Run(ctx context.Context, dir, line string, wrote func(p []byte)) (string, error) {
	c := exec.CommandContext(ctx, cmp.Or(os.Getenv("SHELL"), "/bin/sh"), "-c", line)
	c.Dir, c.SysProcAttr, c.WaitDelay = dir, &syscall.SysProcAttr{Setpgid: true}, time.Second
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	out := &output{wrote: wrote}
	c.Stdout, c.Stderr = out, out
	err := c.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // a process in the background has the output open
		err = nil
	}
	return out.String(), err
}

// output keeps the two ends of what is written to it.
type output struct {
	wrote      func(p []byte)
	head, tail []byte
	cut        int // bytes between them
}

func (o *output) Write(p []byte) (int, error) {
	o.wrote(p)
	n := min(len(p), endBytes-len(o.head))
	o.head, o.tail = append(o.head, p[:n]...), append(o.tail, p[n:]...)
	if over := len(o.tail) - endBytes; over > endBytes { // cut rarely, so that each byte is moved about once
		o.cut += over
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
	return len(p), nil
}

func (o *output) String() string {
	if o.cut == 0 {
		return string(o.head) + string(o.tail)
	}
	return fmt.Sprintf("%s\n[… %d bytes …]\n%s", o.head, o.cut, o.tail)
}
