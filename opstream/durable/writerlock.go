package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lockPollInterval is how often a waiting writer tries again.
	lockPollInterval = 10 * time.Millisecond
	// lockReadTries and lockReadInterval bound how long the loser waits for a winner that has
	// not written its id yet: 50 ms.
	lockReadTries    = 10
	lockReadInterval = 5 * time.Millisecond
	// lockContentLimit bounds what is read of a lock file, in bytes.
	lockContentLimit = 4096
)

// LockedError names the holder of a WriterLock. errors.Is(err, ErrLocked) is true for it.
type LockedError struct {
	PID  int    // 0 if unknown
	Path string // the lock file
}

// Holder returns "process 123", or "another process".
func (e *LockedError) Holder() string {
	if e.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d", e.PID)
}

func (e *LockedError) Error() string { return e.Path + " is held by " + e.Holder() }

func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// lockContent is a lock file's content. It serves only the loser's message: the lock is the
// flock, which ends with its holder.
type lockContent struct {
	PID   int       `json:"pid"`
	Start uint64    `json:"start,omitempty"` // see ProcessStart
	Since time.Time `json:"since"`
}

// alive reports whether the process that wrote it still runs. Another process with its id does
// not count.
func (c *lockContent) alive() bool {
	// EPERM comes from a process that runs as another user.
	if err := unix.Kill(c.PID, 0); c.PID <= 0 || err != nil && !errors.Is(err, unix.EPERM) {
		return false
	}
	start := ProcessStart(c.PID)
	return start == c.Start || start == 0 || c.Start == 0
}

// WriterLock is the lock of the one process that writes a directory. Its file names the last
// holder until that one closes it. A WriterLock is not safe for concurrent use.
type WriterLock struct {
	path string
	f    *os.File // nil: not open
	held bool
}

// NewWriterLock returns a lock that is not held.
func NewWriterLock(path string) *WriterLock { return &WriterLock{path: path} }

// Acquire takes the lock. If it cannot within wait, the error is a *LockedError.
func (l *WriterLock) Acquire(ctx context.Context, wait time.Duration) error {
	err := l.acquire(ctx, wait)
	if err != nil {
		err = errors.Join(err, l.Close())
	}
	return err
}

func (l *WriterLock) acquire(ctx context.Context, wait time.Duration) error {
	if err := l.open(); err != nil {
		return err
	}
	// flock(2) waits without a limit or not at all, so the lock is tried again and again.
	for deadline := time.Now().Add(wait); ; {
		err := TryLockOpen(l.f)
		if l.held = err == nil; l.held {
			break
		}
		if !errors.Is(err, ErrLocked) {
			return fmt.Errorf("lock %s: %w", l.path, err)
		}
		left := time.Until(deadline)
		if left <= 0 {
			return &LockedError{PID: holder(l.f), Path: l.path}
		}
		select {
		case <-time.After(min(left, lockPollInterval)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return l.sign()
}

// sign writes this process into the file, unless the file names it already: a directory in which
// nothing changes is then not written at all.
func (l *WriterLock) sign() error {
	if writer(l.f) == os.Getpid() {
		return nil
	}
	pid := os.Getpid()
	content, err := json.Marshal(lockContent{PID: pid, Start: ProcessStart(pid), Since: time.Now().UTC()})
	if err == nil {
		err = l.f.Truncate(0)
	}
	if err == nil {
		_, err = l.f.WriteAt(append(content, '\n'), 0)
	}
	return err
}

// open opens the file, and opens it again if another one has replaced it since.
func (l *WriterLock) open() error {
	if l.f != nil {
		now, err := os.Lstat(l.path)
		if err == nil {
			var have os.FileInfo
			if have, err = l.f.Stat(); err == nil && os.SameFile(now, have) {
				return nil
			}
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	var err error
	l.f, err = os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, FileMode)
	return err
}

// holder returns the process that holds the lock; 0 if unknown. The id of a dead process is from
// an earlier holder: the new one is about to write its own.
func holder(f *os.File) int {
	for range lockReadTries {
		if pid := writer(f); pid != 0 {
			return pid
		}
		time.Sleep(lockReadInterval)
	}
	return 0
}

func writer(r io.ReaderAt) int {
	data, err := io.ReadAll(io.NewSectionReader(r, 0, lockContentLimit))
	var c lockContent
	if err == nil && json.Unmarshal(data, &c) == nil && c.alive() {
		return c.PID
	}
	return 0
}

// Writer returns the process that seems to hold the WriterLock at path, 0 if none does. It takes
// no lock, which would disturb a writer that starts.
func Writer(path string) int {
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return 0
	}
	defer f.Close()
	return writer(f)
}

// Release frees the lock and keeps the file open for the next Acquire.
func (l *WriterLock) Release() error {
	l.held = false
	return flock(l.f, unix.LOCK_UN)
}

// Close closes the file, which frees the lock; if the lock is held, it empties the file. A nil
// lock is not held.
func (l *WriterLock) Close() error {
	if l == nil || l.f == nil {
		return nil
	}
	var err error
	if l.held {
		err = l.f.Truncate(0)
	}
	err = errors.Join(err, l.f.Close())
	l.f, l.held = nil, false
	return err
}
