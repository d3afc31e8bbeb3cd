package guard

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Deadline ends commands at a time that this process moves on as long as it may go on. Their supervisors read it
// from a file, so that it holds while this process is stopped.
type Deadline struct{ f *os.File }

// NewDeadline makes a deadline in a file, which is replaced. It has passed until Set is called.
func NewDeadline(path string) (*Deadline, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a deadline for commands: %w", err)
	}
	return &Deadline{f}, nil
}

// Set moves it to left from now.
func (d *Deadline) Set(left time.Duration) error {
	_, err := d.f.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(boottime()+left)), 0)
	return err
}

// Close closes the file.
func (d *Deadline) Close() error { return d.f.Close() }

type deadlineKey struct{}

// due is the value of a context with a deadline.
type due struct {
	*Deadline
	safe func(context.Context) error
}

// WithDeadline returns a context whose commands are ended at a deadline. They begin when safe has returned: it waits
// until the deadline lies ahead.
func WithDeadline(ctx context.Context, d *Deadline, safe func(context.Context) error) context.Context {
	return context.WithValue(ctx, deadlineKey{}, due{d, safe})
}

// awaitDeadline waits until a command of a context may begin.
func awaitDeadline(ctx context.Context) error {
	if d, ok := ctx.Value(deadlineKey{}).(due); ok {
		return d.safe(ctx)
	}
	return nil
}

// boottime is a clock that all processes of a machine share and that cannot be set; it runs while the machine sleeps.
func boottime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) // it cannot fail
	return time.Duration(ts.Nano())
}

// deadlinePoll is how often a supervisor reads the deadline.
const deadlinePoll = 250 * time.Millisecond

func overdue(f *os.File) bool {
	at := make([]byte, 8)
	n, _ := f.ReadAt(at, 0)
	return n < len(at) || boottime() >= time.Duration(binary.BigEndian.Uint64(at))
}

// expire closes passed and calls stop once the deadline in a file has passed.
func expire(f *os.File, passed chan<- struct{}, stop func()) {
	for range time.Tick(deadlinePoll) {
		if overdue(f) {
			close(passed)
			stop()
			return
		}
	}
}
